import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { buildProgram } from '../../daemon/cli/program.ts';
import { trackedFiles } from '../../helpers/build/tree.ts';
import { checkSettings } from '../../server/config.ts';

const top = resolve(import.meta.dirname, '../..');
const pages = (await trackedFiles(top)).filter((file) =>
  /^(README|SECURITY|CHANGELOG|docs\/(machines\/)?[a-z-]+|machines\/STATES)\.md$/.test(file),
);
const textOf = (page: string): string => readFileSync(join(top, page), 'utf8');

describe('the pages', () => {
  for (const page of pages) {
    it(`${page} links only to what is there`, () => {
      const targets = [...textOf(page).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target = '']) => target);
      const broken = targets.filter(
        (target) => !/^https?:/.test(target) && !existsSync(join(top, dirname(page), target)),
      );
      assert.deepEqual(broken, []);
    });

    it(`${page} names only commands that exist`, () => {
      const names = buildProgram('').commands.map((command) => command.name());
      const code = [...textOf(page).matchAll(/`[^`\n]+`|^```\n[\s\S]*?^```$/gm)].map(([found]) => found).join('\n');
      const used = [...code.matchAll(/(?:nessie-executor|cli\.mjs)((?: --(?:name|in) \S+)*) ([a-z][a-z-]+)/g)];
      const unknown = used.map(([, , name = '']) => name).filter((name) => !names.includes(name));
      assert.deepEqual(unknown, []);
    });
  }

  it('every package that is installed stands in the changelog with its reason, and no other', () => {
    // Written by npm; the test fails where it has another shape.
    const { dependencies, devDependencies, overrides } = JSON.parse(textOf('package.json')) as Record<string, object>;
    const [, section = ''] = textOf('CHANGELOG.md').split('### Dependencies');
    const lines = section.split('\n').filter((line) => line.startsWith('- '));
    for (const line of lines) assert.match(line, /: \w/);
    const quoted = lines.flatMap((line) => [...line.matchAll(/`(@?[a-z][\w./-]*)`/g)].map(([, name]) => name));
    const named = quoted.filter((name) => name !== undefined && !['link', 'workspace'].includes(name));
    const installed = Object.keys({ ...dependencies, ...devDependencies, ...overrides });
    assert.deepEqual(new Set(named), new Set(installed));
  });

  it('the configuration of the control plane in the operators’ page is accepted', () => {
    const [, text = ''] = /```json\n(\{ *\n *"listen"[\s\S]*?)```/.exec(textOf('docs/operators.md')) ?? [];
    assert.equal(checkSettings(JSON.parse(text)).publicOrigin, 'https://nessie.example.org:7420');
  });

  it('the operators’ page tells every key of the control plane’s configuration', () => {
    const source = readFileSync(join(top, 'server/config.ts'), 'utf8');
    const [, schema = ''] = /settingsSchema = z\.strictObject\(\{\n([\s\S]*?)\n\}\);/.exec(source) ?? [];
    const keys = [...schema.matchAll(/^ {2}(\w+):/gm)].map(([, key = '']) => key);
    assert.ok(keys.length > 4);
    const page = textOf('docs/operators.md');
    for (const key of keys) assert.match(page, new RegExp(`\`${key}[\`.]`), key);
  });
});
