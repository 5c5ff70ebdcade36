import assert from 'node:assert/strict';

import { guardOf, guardsOf } from '../../../helpers/protocol/guarded.ts';
import type { GuardReason } from '../../../helpers/protocol/guarded.ts';

const cases: readonly (readonly [string, GuardReason | undefined])[] = [
  ['.git/config', 'version control'],
  ['.git', 'version control'],
  ['vendor/lib/.git/hooks/post-checkout', 'version control'],
  ['.GIT/config', 'version control'],
  ['.gitmodules', 'version control'],
  ['.husky/pre-commit', 'hook'],
  ['.pre-commit-config.yaml', 'hook'],
  ['.github/workflows/ci.yml', 'CI'],
  ['.gitlab-ci.yml', 'CI'],
  ['Jenkinsfile', 'CI'],
  ['.npmrc', 'package manager'],
  ['packages/a/package.json', 'package manager'],
  ['.vscode/tasks.json', 'editor task'],
  ['a.code-workspace', 'editor task'],
  ['.bashrc', 'shell start'],
  ['.envrc', 'shell start'],
  ['.config/fish/config.fish', 'shell start'],
  ['vendor/store.git/config', 'version control'],
  ['cache/HEAD', 'version control'],
  ['cache/hooks/post-checkout', 'hook'],
  ['.config/git/config', 'version control'],
  ['.helix/languages.toml', 'editor task'],
  ['.gdbinit', 'editor task'],
  ['.lldbinit', 'editor task'],
  ['.pam_environment', 'shell start'],
  ['.direnv/bin/nix', 'shell start'],
  ['.g\u200cit/config', 'version control'],
  ['.git\u200d/config', 'version control'],
  ['\ufeff.git/config', 'version control'],
  ['.ba\u00adshrc', 'shell start'],
  ['.ba\u017fhrc', 'shell start'],
  ['\uff0egit/config', 'version control'],
  ['src/hooks/use-state.ts', undefined],
  ['src/git/index.ts', undefined],
  ['.gitignore', undefined],
  ['docs/package.json.md', undefined],
  ['README.md', undefined],
  ['github/workflows/ci.yml', undefined],
  ['Makefile.txt', undefined],
];

describe('guarded entries', () => {
  for (const [path, reason] of cases) {
    it(`${path}: ${reason ?? 'a plain approval covers it'}`, () => {
      assert.equal(guardOf(Buffer.from(path)), reason);
      assert.deepEqual(guardsOf([Buffer.from(path)]), [reason]);
    });
  }

  const together: readonly (readonly [string, Readonly<Record<string, GuardReason | undefined>>])[] = [
    [
      'a bare repository under another name',
      {
        'a/HEAD': 'version control',
        'a/objects/info': undefined,
        'a/refs': undefined,
        'a/config': 'version control',
        'a/hooks/any': 'version control',
        'b/hooks/any': undefined,
      },
    ],
    [
      'a bare repository in the root, of which one part stands there already',
      { objects: undefined, refs: undefined, 'hooks/any': 'version control' },
    ],
    ['a file that may be the config of a repository that stands there already', { 'a/config': 'version control' }],
    ['a folder of that name', { 'a/config': undefined, 'a/config/routes.rb': undefined, 'a/objects/b': undefined }],
  ];
  for (const [title, expected] of together) {
    it(`${title}: each path as the others make it`, () => {
      const paths = Object.keys(expected).map((path) => Buffer.from(path));
      assert.deepEqual(guardsOf(paths), Object.values(expected));
    });
  }
});
