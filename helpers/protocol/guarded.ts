/*
 * Entries that run by themselves or decide what runs: a change of one is a change of what the person's tools do later, so a
 * plain approval does not cover it (S-148). This is the one list.
 */
import { toPathText } from './path-text.ts';

/** What a guarded entry can set in motion. */
export type GuardReason = 'version control' | 'hook' | 'CI' | 'package manager' | 'editor task' | 'shell start';

/** Compared with each path in lower case, from the root down: a folder means everything in it. */
const rules: readonly (readonly [GuardReason, RegExp])[] = [
  ['version control', /(?:^|\/)\.(?:git|hg|svn|jj|bzr)(?:\/|$)/],
  ['version control', /(?:^|\/)\.(?:gitmodules|gitattributes|gitconfig|hgrc)$/],
  ['hook', /(?:^|\/)\.(?:husky|githooks|lefthook|lefthook-local|pre-commit-hooks)(?:\/|$)/],
  [
    'hook',
    /(?:^|\/)(?:\.pre-commit-config\.ya?ml|\.?lefthook(?:-local)?\.(?:ya?ml|json|toml)|\.overcommit\.yml|\.huskyrc[^/]*)$/,
  ],
  ['CI', /(?:^|\/)\.(?:github|gitlab|circleci|buildkite|woodpecker|forgejo|gitea|azure-pipelines|teamcity|ci)(?:\/|$)/],
  [
    'CI',
    /(?:^|\/)(?:\.gitlab-ci|\.travis|\.drone|\.cirrus|\.woodpecker|appveyor|\.appveyor|azure-pipelines|bitbucket-pipelines|cloudbuild|buildspec)\.ya?ml$/,
  ],
  ['CI', /(?:^|\/)jenkinsfile[^/]*$/],
  [
    'package manager',
    /(?:^|\/)(?:\.npmrc|\.yarnrc|\.yarnrc\.yml|\.pnpmfile\.[cm]?js|pnpm-workspace\.yaml|bunfig\.toml|pip\.conf|\.pypirc|setup\.py|conftest\.py|sitecustomize\.py|usercustomize\.py|build\.rs)$/,
  ],
  [
    'package manager',
    /(?:^|\/)(?:package\.json|\.cargo\/config(?:\.toml)?|\.bundle\/config|gradle-wrapper\.properties|maven-wrapper\.properties|\.mvn\/(?:jvm\.config|maven\.config|extensions\.xml))$/,
  ],
  ['package manager', /(?:^|\/)\.yarn\/(?:releases|plugins|sdks)(?:\/|$)/],
  ['editor task', /(?:^|\/)\.(?:vscode|idea|fleet|zed|devcontainer|cursor|claude|nvim)(?:\/|$)/],
  [
    'editor task',
    /(?:^|\/)(?:\.devcontainer\.json|[^/]+\.code-workspace|\.vimrc|\.exrc|\.nvimrc|\.nvim\.lua|\.dir-locals\.el|\.sublime-project|\.mcp\.json)$/,
  ],
  [
    'shell start',
    /(?:^|\/)\.(?:envrc|bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|inputrc|xprofile|xinitrc|xsessionrc)$/,
  ],
  ['shell start', /(?:^|\/)(?:\.config\/(?:fish|nushell|autostart|systemd)|\.ssh|\.direnv)(?:\/|$)/],
  ['shell start', /(?:^|\/)(?:\.tool-versions|\.mise\.toml|mise\.toml|\.asdfrc)$/],
];

/** Why a path needs the machine's confirmation, or undefined. A name that is not UTF-8 is judged by its path text. */
export function guardOf(path: Uint8Array): GuardReason | undefined {
  const text = toPathText(path).normalize('NFKC').toLowerCase();
  return rules.find(([, pattern]) => pattern.test(text))?.[0];
}
