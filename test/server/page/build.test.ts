import assert from 'node:assert/strict';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { buildPage, PAGE_BUDGET_BYTES } from '../../../helpers/build/page.ts';
import type { BuiltPage } from '../../../helpers/build/page.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..', '..');

function filesIn(folder: string): ReadonlyMap<string, string> {
  const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    entries
      .map((entry) => path.join(entry.parentPath, entry.name))
      .toSorted()
      .map((file) => [path.relative(folder, file), fs.readFileSync(file, 'utf8')]),
  );
}

describe('the built page', () => {
  let folder: string;
  let built: BuiltPage;
  let files: ReadonlyMap<string, string>;

  before(async () => {
    folder = fs.mkdtempSync(path.join(tmpdir(), 'built-page-'));
    built = await buildPage(TOP, folder);
    files = filesIn(folder);
  });
  after(() => fs.rmSync(folder, { recursive: true }));

  it('is small: what is loaded before the first view stays within its budget', () => {
    assert.ok(built.initialBytes > 10_000);
    assert.ok(built.initialBytes <= PAGE_BUDGET_BYTES, `${built.initialBytes} of ${PAGE_BUDGET_BYTES} bytes`);
  });

  it('is the same, byte for byte, when it is built again', async () => {
    const again = fs.mkdtempSync(path.join(tmpdir(), 'built-page-'));
    await buildPage(TOP, again);
    assert.deepEqual(filesIn(again), files);
    fs.rmSync(again, { recursive: true });
  });

  it('has one document that names files alone: no script, style or handler stands in it', () => {
    const html = files.get('index.html') ?? '';
    assert.doesNotMatch(html, /<style|style=|\son\w+=|javascript:|<script(?![^>]*\bsrc=)/i);
    for (const [, address = ''] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      assert.match(address, /^\/assets\/[\w-]+\.(js|css|svg)$/);
      assert.ok(files.has(address.slice(1)), address);
    }
  });

  it('names no other host, and every name has a hash of its content', () => {
    for (const [name, content] of files) {
      if (name !== 'index.html') assert.match(name, /^assets\/\w[\w-]*-[0-9A-Za-z]{8,}\.(js|css|svg)$/);
      const hosts = [...content.matchAll(/\bhttps?:\/\/[\w.-]+/g)].map(([host]) => host);
      assert.deepEqual(
        hosts.filter((host) => !host.startsWith('http://www.w3.org')),
        [],
        name,
      );
    }
  });

  it('compiles no text as code', () => {
    for (const [name, content] of files)
      assert.doesNotMatch(content, /\beval\(|new Function\(|document\.write\(/, name);
  });

  it('our own sources draw by elements alone', () => {
    const sources = filesIn(path.join(TOP, 'server', 'page'));
    for (const [name, content] of sources) {
      assert.doesNotMatch(content, /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|style=\{/, name);
    }
  });
});
