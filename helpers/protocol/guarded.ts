/*
 * Entries that run by themselves or decide what runs: a change of one is a change of what the person's tools do later, so a
 * plain approval does not cover it (S-148). This is the one list.
 */
import { toPathText } from './path-text.ts';

/** What a guarded entry can set in motion. */
export type GuardReason = 'version control' | 'hook' | 'CI' | 'package manager' | 'editor task' | 'shell start';

/** Hooks that git starts by their names (githooks(5)), wherever a repository lies. */
const GIT_HOOKS =
  'applypatch-msg|pre-applypatch|post-applypatch|pre-commit|pre-merge-commit|prepare-commit-msg|commit-msg|post-commit|pre-rebase|post-checkout|post-merge|pre-push|pre-receive|update|proc-receive|post-receive|post-update|reference-transaction|push-to-checkout|pre-auto-gc|post-rewrite|sendemail-validate|fsmonitor-watchman|post-index-change';

/** Compared with each path in folded case, from the root down: a folder means everything in it. */
const rules: readonly (readonly [GuardReason, RegExp])[] = [
  ['version control', /(?:^|\/)\.(?:git|hg|svn|jj|bzr)(?:\/|$)/],
  ['version control', /(?:^|\/)\.(?:gitmodules|gitattributes|gitconfig|hgrc)$/],
  // a bare repository needs no `.git`: any folder with HEAD, objects and refs is one, and git reads its config in passing
  ['version control', /(?:^|\/)(?:[^/]+\.git(?:\/|$)|head$|config\.worktree$|commondir$)/],
  ['version control', /(?:^|\/)\.config\/git(?:\/|$)/],
  ['hook', new RegExp(`(?:^|/)hooks/(?:${GIT_HOOKS})$`)],
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
  ['editor task', /(?:^|\/)\.(?:vscode|idea|fleet|zed|helix|devcontainer|cursor|claude|nvim)(?:\/|$)/],
  [
    'editor task',
    /(?:^|\/)(?:\.devcontainer\.json|[^/]+\.code-workspace|\.vimrc|\.gdbinit|\.gdbearlyinit|\.lldbinit|\.exrc|\.nvimrc|\.nvim\.lua|\.dir-locals\.el|\.sublime-project|\.mcp\.json)$/,
  ],
  [
    'shell start',
    /(?:^|\/)\.(?:envrc|bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|pam_environment|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|inputrc|xprofile|xinitrc|xsessionrc)$/,
  ],
  ['shell start', /(?:^|\/)(?:\.config\/(?:fish|nushell|autostart|systemd)|\.ssh|\.direnv)(?:\/|$)/],
  ['shell start', /(?:^|\/)(?:\.tool-versions|\.mise\.toml|mise\.toml|\.asdfrc)$/],
];

/** Code points that show nothing and that some file systems leave out of a comparison of names, such as U+200D. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;

/** A path as the rules compare it: no invisible code points, one form, one case. */
function folded(path: Uint8Array): string {
  const visible = toPathText(path).normalize('NFKC').replace(INVISIBLE, '');
  // upper case first: it joins letters that lower case keeps apart, such as the long s
  return visible.toUpperCase().toLowerCase().normalize('NFKC');
}

const reasonOf = (text: string): GuardReason | undefined => rules.find(([, pattern]) => pattern.test(text))?.[0];

/** Why a path needs the machine's confirmation whatever else changes, or undefined. A name that is not UTF-8 is judged by its path text. */
export function guardOf(path: Uint8Array): GuardReason | undefined {
  return reasonOf(folded(path));
}

/** Folders in which two of the three parts of a bare repository change; the third may stand there already. */
function bareFolders(texts: readonly string[]): ReadonlySet<string> {
  const parts = new Map<string, Set<string>>();
  for (const text of texts) {
    const names = text.split('/');
    for (const [depth, name] of names.entries()) {
      if (!['head', 'objects', 'refs'].includes(name)) continue;
      const folder = names.slice(0, depth).join('/');
      const found = parts.get(folder) ?? new Set();
      parts.set(folder, found.add(name));
    }
  }
  return new Set([...parts].filter(([, found]) => found.size >= 2).map(([folder]) => folder));
}

/** Every folder above the paths. */
function foldersOf(texts: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const text of texts) {
    for (
      let end = text.lastIndexOf('/');
      end > 0 && !folders.has(text.slice(0, end));
      end = text.lastIndexOf('/', end - 1)
    )
      folders.add(text.slice(0, end));
  }
  return folders;
}

/**
 * The same for all changed paths of one draft, in their order: beside what `guardOf` says, `config` where it is no folder of
 * the draft, since it may be that of a bare repository that stands there already, and `hooks` of a bare repository.
 */
export function guardsOf(paths: readonly Uint8Array[]): (GuardReason | undefined)[] {
  const texts = paths.map(folded);
  const [bare, folders] = [bareFolders(texts), foldersOf(texts)];
  const inBare = (text: string): boolean => {
    const names = text.split('/');
    return names.some(
      (name, depth) => (name === 'hooks' || name === 'config') && bare.has(names.slice(0, depth).join('/')),
    );
  };
  return texts.map((text) => {
    const reason = reasonOf(text);
    if (reason !== undefined) return reason;
    const isConfig = /(?:^|\/)config$/.test(text) && !folders.has(text);
    return isConfig || inBare(text) ? 'version control' : undefined;
  });
}
