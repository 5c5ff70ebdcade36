import assert from 'node:assert/strict';

import { guardOf } from '../../../helpers/protocol/guarded.ts';
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
    });
  }
});
