import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import * as z from 'zod';

import { checkCasts } from '../helpers/build/casts.ts';
import { checkGenerated } from '../helpers/build/generated.ts';
import { bans, folders, reaches } from '../helpers/build/import-rules.ts';
import { checkImports } from '../helpers/build/imports.ts';
import { checkPlaces } from '../helpers/build/places.ts';
import { trackedFiles } from '../helpers/build/tree.ts';
import { TABLE } from '../helpers/table.ts';
import { planted } from './fixtures/planted-imports.ts';

const root = join(import.meta.dirname, '..');

async function plant(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'nessie-planted-'));
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return folder;
}

async function withPlanted<T>(
  files: Readonly<Record<string, string>>,
  check: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await plant(files);
  try {
    return await check(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A word that the place checker refuses, written so that this file holds none. */
const halves = (first: string, second: string): string => `${first}${second}`;

const entryOf = (row: string): string =>
  row === 'daemon' ? 'daemon/main.ts' : row === 'cli' ? 'daemon/cli/main.ts' : `helpers/${row}/main.ts`;

const oxlint = async (file: string, text: string): Promise<string> => {
  const config = await readFile(join(root, '.oxlintrc.json'), 'utf8');
  return withPlanted({ '.oxlintrc.json': config, [file]: text }, async (folder) => {
    const options = ['--format', 'unix', file];
    return spawnSync(join(root, 'node_modules/.bin/oxlint'), options, { cwd: folder, encoding: 'utf8' }).stdout;
  });
};

const reasonOf = (rule: string): string | undefined =>
  [...bans, ...folders, ...reaches].find(({ name }) => name === rule)?.reason;

describe('import rules', () => {
  for (const { sentence, rule, refused, allowed } of planted) {
    it(`the import checker refuses: ${sentence}`, async () => {
      const found = await withPlanted(refused, checkImports);
      assert.deepEqual([...new Set(found.violations.map((violation) => violation.rule))], [rule]);
      const reason = reasonOf(rule);
      if (reason !== undefined) assert.equal(found.violations[0]?.reason, reason);
      assert.notEqual(found.violations[0]?.reason, '');
    });

    it(`and lets its lawful twin pass: ${sentence}`, async () => {
      assert.deepEqual((await withPlanted(allowed, checkImports)).violations, []);
    });
  }

  it('every import rule has a planted violation', () => {
    const free = folders
      .filter(({ values }) => values.some((pattern) => pattern.test('anything at all')))
      .map(({ name }) => name);
    assert.deepEqual(free, ['test/'], 'only tests may import anything');
    const rules = [...bans, ...folders, ...reaches].map(({ name }) => name).filter((name) => !free.includes(name));
    const plants = new Set(planted.map(({ rule }) => rule));
    assert.deepEqual(
      rules.filter((rule) => !plants.has(rule)),
      [],
    );
  });

  it('no import of the tree breaks a rule', async () => {
    const { files, imports, violations } = await checkImports(root);
    assert.ok(files > 20 && imports > files, `saw ${files} files and ${imports} imports`);
    assert.deepEqual(violations, []);
  });

  it('the import checker refuses to judge a tree in which it sees no source file', async () => {
    await assert.rejects(withPlanted({ 'README.md': 'empty' }, checkImports), /saw no source file/);
  });
});

describe('lint of pure folders', () => {
  const impure: Readonly<Record<string, string>> = {
    'reads the clock': 'export const now = (): number => Date.now();\n',
    'starts a timer': 'export const later = (run: () => void): unknown => setTimeout(run, 1);\n',
    'draws a random number': 'export const draw = (): number => Math.random();\n',
    prints: "export const say = (): void => console.log('a');\n",
    'reads the process': "export const home = (): unknown => process.env['HOME'];\n",
  };
  for (const [sentence, text] of Object.entries(impure)) {
    it(`a machine or rule that ${sentence} is refused, and the daemon may`, async () => {
      const refusal = /machines and rules are pure|'Math\.random' is restricted/;
      assert.match(await oxlint('machines/command/machine.ts', text), refusal);
      assert.match(await oxlint('server/grants/rules.ts', text), refusal);
      assert.doesNotMatch(await oxlint('daemon/main.ts', text), refusal);
    });
  }
});

describe('places', () => {
  const refusals: Readonly<Record<string, { files: Record<string, string>; finding: RegExp }>> = {
    'an entry of the root that nothing prescribes': {
      files: { 'scripts/run.sh': 'true\n' },
      finding: /^scripts: the root holds/,
    },
    'a file of 401 lines': {
      files: { 'daemon/long.ts': 'export {};\n'.repeat(401) },
      finding: /401 lines, the limit is 400/,
    },
    'a home folder of a person': {
      files: { 'daemon/a.ts': `// see ${halves('/ho', 'me')}/jane/notes.txt\n` },
      finding: /daemon\/a\.ts:1: a home folder/,
    },
    'the host of a package registry': {
      files: { 'docs/a.md': `get it from https://${halves('regis', 'try')}.example.net/x\n` },
      finding: /docs\/a\.md:1: the host of a package registry/,
    },
    'work left undone': {
      files: { 'server/a.ts': `export {};\n// ${halves('TO', 'DO')} later\n` },
      finding: /server\/a\.ts:2: work left undone/,
    },
  };
  for (const [sentence, { files, finding }] of Object.entries(refusals)) {
    it(`the place checker refuses: ${sentence}`, async () => {
      const findings = await withPlanted(files, checkPlaces);
      assert.equal(findings.length, 1, findings.join('\n'));
      assert.match(findings[0] ?? '', finding);
    });
  }

  it('the root holds prescribed entries, no file is over 400 lines, and nothing names the machine it was written on', async () => {
    assert.deepEqual(await checkPlaces(root), []);
  });

  it('a cast without its reason on the line above is refused, with one it passes', async () => {
    const cast = 'export const length = (value: unknown): number => (value as string).length;\n';
    assert.equal((await withPlanted({ 'daemon/a.ts': `import 'x';\n${cast}` }, checkCasts)).length, 1);
    assert.deepEqual(await withPlanted({ 'daemon/a.ts': `// TRUST: the caller checked it.\n${cast}` }, checkCasts), []);
  });

  it('every cast that ships has its reason on the line above', async () => {
    assert.deepEqual(await checkCasts(root), []);
  });

  it('a diagram of a machine that is gone is stale', async () => {
    const found = await withPlanted({ 'docs/machines/gone.svg': '<svg/>' }, checkGenerated);
    assert.deepEqual(found, ['docs/machines/gone.svg is generated by nothing: npm run docs']);
  });

  it('generated files are what their generators write now', async () => {
    assert.deepEqual(await checkGenerated(root), []);
  });
});

describe('process table', () => {
  it('every row of the process table has its declaration and its program', () => {
    const missing = Object.keys(TABLE).flatMap((row) =>
      [`helpers/${row}/privileges.ts`, entryOf(row)].filter((file) => !existsSync(join(root, file))),
    );
    assert.deepEqual(missing, []);
  });

  it('every folder that declares privileges or holds a program is a row of the process table', async () => {
    const rows = (await trackedFiles(root))
      .map((file) => /^helpers\/([^/]+)\/(main|privileges)\.ts$/.exec(file)?.[1])
      .filter((name) => name !== undefined && name !== 'runtime');
    const strangers = [...new Set(rows)].filter((name) => name !== undefined && !(name in TABLE));
    assert.deepEqual(strangers, []);
  });

  it('every entry of every privilege declaration states its reason', () => {
    const bare: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (Array.isArray(value)) value.forEach((item, index) => walk(item, `${path}[${index}]`));
      else if (typeof value === 'object' && value !== null) {
        for (const [key, item] of Object.entries(value)) walk(item, `${path}.${key}`);
        if ('reason' in value && String(value.reason).trim().length < 8) bare.push(path);
      }
    };
    for (const [row, privileges] of Object.entries(TABLE)) walk(privileges, row);
    assert.deepEqual(bare, []);
  });
});

describe('configuration', () => {
  const keysOf = (schema: unknown): string[] => {
    if (typeof schema !== 'object' || schema === null) return [];
    const own =
      'properties' in schema && typeof schema.properties === 'object' && schema.properties
        ? Object.keys(schema.properties)
        : [];
    return [...own, ...Object.values(schema).flatMap(keysOf)];
  };

  it('every configuration key has a reader outside the file that declares it', async () => {
    const files = (await trackedFiles(root)).filter((file) => /^(actors|daemon|helpers|server)\/.*\.tsx?$/.test(file));
    const texts = new Map(
      await Promise.all(files.map(async (file) => [file, await readFile(join(root, file), 'utf8')] as const)),
    );
    const unread: string[] = [];
    for (const file of files.filter((name) => /^(daemon|server)\/(config|policy|configuration)\.ts$/.test(name))) {
      const exported: unknown = await import(pathToFileURL(join(root, file)).href);
      const schemas = Object.values(exported ?? {}).filter((value) => value instanceof z.ZodObject);
      const keys = new Set(schemas.flatMap((schema) => keysOf(z.toJSONSchema(schema, { unrepresentable: 'any' }))));
      const others = [...texts].filter(([other]) => other !== file).map(([, text]) => text);
      unread.push(
        ...[...keys]
          .filter((key) => !others.some((text) => new RegExp(`\\b${key}\\b`).test(text)))
          .map((key) => `${file}: ${key}`),
      );
    }
    assert.deepEqual(unread, []);
  });
});
