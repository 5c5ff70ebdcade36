/*
 * Every mutant of the promotion protocol: each sync deleted, each two steps that stand after one another swapped, each check of an
 * identity answered as if all were well, each flag that keeps a rename from replacing taken away. Most are made from the source by
 * rule; what no rule finds is named in CHECKS, and a text there that no longer stands in its file ends the run.
 */
import fs from 'node:fs';
import path from 'node:path';

import { Maker } from './mutant.ts';
import type { Mutant } from './mutant.ts';
import { blocksOf, endOfCall, TOP } from './source.ts';

const FOLDER = 'helpers/promote';

/** Answers of questions about identity that let everything pass. */
const PASSING: Readonly<Record<string, string>> = {
  isSame: 'true',
  isStillAt: 'true',
  isEmptyFolder: 'true',
  isRootTimeOurs: 'true',
  isFolder: 'true',
  isAt: 'true',
  isOurs: 'true',
  isStagingTime: 'true',
  isSoonAfter: 'true',
  isEnded: 'true',
  isStaged: 'true',
  isFresh: 'true',
  isFrozen: 'false',
  hasStage: 'false',
  writerWaits: 'false',
  timingSafeEqual: 'true',
};
/** Checks that throw: left out whole. */
const THROWING = [
  'checkOrigin checkOriginal checkStaged checkOpenRoot checkRoot checkApart checkManifest checkFolder checkFree',
  'checkCapable checkKept',
].flatMap((names) => names.split(' '));

/** Further checks, by file: the text as it stands, once, and what is put in its place. */
const CHECKS: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  'approval.ts': [
    ['hex(byOld.oldPublicKey) !== current', 'false'],
    ['if (!samePayload)', 'if (false)'],
    ['statement.executor !== pin.executor', 'false'],
    ['now + CLOCK_AHEAD_MS < statement.notBefore', 'false'],
    ['now >= statement.expiresAt', 'false'],
    ['statement.sequence <= mark.sequence || ', ''],
    [' || mark.used.includes(statement.promotion)', ''],
    ['[hex(statement.rootIdentity), pin.rootIdentity]', '[hex(statement.rootIdentity)]'],
    ['[hex(statement.rootIdentity), pin.rootIdentity]', '[pin.rootIdentity]'],
    ['manifest.run !== approval.run', 'false'],
    ['manifest.rootIdentity !== hex(approval.rootIdentity)', 'false'],
    ['confirmation.manifestDigest === digest', 'true'],
    ['confirmation.run === manifest.run', 'true'],
    ['confirmation.rootIdentity === manifest.rootIdentity', 'true'],
    ['missing !== undefined', 'false'],
  ],
  'capabilities.ts': [
    ["takeLease(one) !== 'unsupported'", 'true'],
    ["takeLease(one) !== 'unsupported'", 'false'],
  ],
  'dispose.ts': [
    ['tree.leases ? takeLease(descriptor) :', 'false ? takeLease(descriptor) :'],
    ["lease === 'in-use'", 'false'],
    ['(unsafe && known !== step.after)', 'false'],
    ['digestDescriptor(descriptor).sha256 !== known?.sha256', 'false'],
  ],
  'folder-times.ts': [['status.ino.toString() !== folder.ino', 'false']],
  'go-forward.ts': [['!leases && steps', 'false && steps']],
  'history.ts': [['found.prepared.begin.promotion !== id', 'false']],
  'journal-records.ts': [['!expected.equals(content.subarray(end - CHAIN_BYTES, end))', 'false']],
  'journal.ts': [
    ['!(committed && whole)', '!committed'],
    ['found.length > 1', 'false'],
    ['!inOrder || ', ''],
    ['steps.length !== prepare.steps', 'false'],
    ['folders.length !== prepare.folders', 'false'],
  ],
  'lease.ts': [
    ["leases ? takeLease(descriptor) : 'unsupported'", "'unsupported'"],
    ["answer === 'in-use'", 'false'],
    ['digestDescriptor(file.descriptor).sha256 === file.sha256', 'true'],
    ['(await digestInTurns(file.descriptor, turn)).sha256 === file.sha256', 'true'],
    ['getLease(descriptor) !== LEASE.READ', 'false'],
  ],
  'mark.ts': [['!sha256(payload).equals(content.subarray(0, DIGEST_BYTES))', 'false']],
  'own-folder.ts': [
    ['(status.mode & KIND) !== REGULAR', 'false'],
    ['status.nlink !== 1', 'false'],
    ['!trust.owners.includes(status.uid)', 'false'],
    ['(status.mode & trust.forbiddenMode) === 0', 'true'],
    ['(status.mode & KIND) !== DIRECTORY', 'false'],
    ['status.uid !== ownUid()', 'false'],
    ['(status.mode & 0o077) !== 0', 'false'],
  ],
  'place.ts': [
    ['status.nlink === 1', 'true'],
    [' && (status.mode & 0o7777) === before.mode', ''],
    [' || (status.mode & 0o7777) !== before.mode', ''],
    ['(await digestInTurns(descriptor, turn)).sha256 === after.sha256', 'true'],
  ],
  'preflight.ts': [
    ['status.uid !== ownUid()', 'false'],
    ['kindOf(status.mode) === kind', 'true'],
    ['status.mountId === statx(folder, ITSELF).mountId', 'true'],
    ['status.uid === ownUid()', 'true'],
    ['status.nlink === 1', 'true'],
    ['(status.mode & 0o7777) !== before.mode', 'false'],
    ['(status.mode & OWNER_WRITES) === 0', 'false'],
    ['Number(status.size) !== before.bytes', 'false'],
    ['(await digestInTurns(descriptor, turn)).sha256 !== before.sha256', 'false'],
    ['!gone.has(keyOf(child))', 'false'],
    ['before.known?.inos.includes(status.ino.toString()) === false', 'false'],
    ['before.known?.mtimeNs === facts.mtimeNs', 'true'],
    ['if (unseen)', 'if (false)'],
  ],
  'recover.ts': [
    ["rootIdentity(root).toString('hex') === begin.rootIdentity", 'true'],
    ['status.ino.toString() === begin.rootIno', 'true'],
    ['begin.bootId !== bootId', 'true'],
    ['status.dev.toString() === begin.rootDev', 'true'],
  ],
  'stage-end.ts': [
    ["kindOf(status.mode) === 'directory' && status.uid", 'status.uid'],
    [' && status.uid === ownUid()', ''],
    ['status.ino.toString() !== ino', 'false'],
  ],
  'stage-plan.ts': [['facts.mode !== after.mode', 'false']],
  'stage-content.ts': [
    ['copied.sha256 !== side.sha256', 'false'],
    ['copied.bytes !== side.bytes', 'false'],
    ['offset + chunk.length > side.bytes', 'false'],
    ['!isWhole || ', ''],
    ['(await digestInTurns(descriptor, turn)).sha256 !== side.sha256', 'false'],
  ],
  'take-back.ts': [
    [' || (status.mode & 0o7777) !== after.mode', ''],
    [' && outcome.result', ''],
  ],
  'take-all-back.ts': [["results.get(folder.slot) === 'before'", 'true']],
  'tree.ts': [
    ['found.ino === held.ino', 'true'],
    ['found.dev === held.dev', 'true'],
    ['found.mountId === held.mountId', 'true'],
    ['status.ino.toString() === facts.ino', 'true'],
    ["kindOf(status.mode) === (facts.sha256 === '' ? 'directory' : 'file')", 'true'],
  ],
  'undo-plan.ts': [
    ["begin.rootIdentity === rootIdentity(root).toString('hex')", 'true'],
    ['begin.rootIno === ino.toString()', 'true'],
    ['if (size === BigInt(before.size)) continue;', 'continue;'],
    ['begin.at < since', 'false'],
  ],
  'undo.ts': [
    ['confirmation.undo === promotion', 'true'],
    ['confirmation.journalDigest === digest', 'true'],
    ["confirmation.rootIdentity === rootIdentity(root).toString('hex')", 'true'],
  ],
};

/** Calls that are a step of the protocol: two statements that hold one each are swapped. */
const STEP = new RegExp(
  '\\b(?:fsync|syncfs|renameat2|unlinkat|mkdirat|linkDescriptor|fchmod|fchown|pwrite|futimens|setTime|append|write|prepare|commit|' +
    'sync|enter|exchange|moveOut|moveIn|swapBack|takeLease|releaseLease|writerWaits|touch|createOwn|dropUnfinished|rest|run|begin|' +
    'noteKept|readMark|useConfirmation|(?:discard|dispose|close(?!Sync)|restore|sync|gather|take|go|place|stage|save|copy|keep|remove|archive|' +
    'replace|forget|prune|settle|check|is|open|drop|mark|move|probe|stage)[A-Z]\\w*)\\(',
);
const SWAPPED = [
  'apply approve capabilities dispose folder-times go-back go-forward handlers history journal own-folder place',
  'recover repair resting-place stage stage-end stage-plan strays take-all-back take-back undo',
].flatMap((names) => names.split(' '));

/** All mutants, by file. Throws where a text of CHECKS does not stand once in its file. */
export function allMutants(): readonly Mutant[] {
  const files = fs.readdirSync(path.join(TOP, FOLDER)).filter((name) => name.endsWith('.ts'));
  const unknown = [...Object.keys(CHECKS), ...SWAPPED.map((name) => `${name}.ts`)].filter(
    (name) => !files.includes(name),
  );
  if (unknown.length > 0) throw new Error(`no file of the protocol: ${unknown.join(', ')}`);
  return files.flatMap((name) => {
    const maker = new Maker(`${FOLDER}/${name}`);
    deleteSyncs(maker);
    passChecks(maker);
    namedChecks(maker, CHECKS[name] ?? []);
    freeRenames(maker);
    if (SWAPPED.includes(name.replace('.ts', ''))) swapSteps(maker);
    return maker.made;
  });
}

function deleteSyncs(maker: Maker): void {
  for (const { index } of maker.source.matchAll(/(?<!\bfunction )\b(?:fsync|fdatasync|syncfs)\(/g)) {
    const end = endOfCall(maker.source, index);
    maker.replace('sync', index, end, 'void 0', `without ${maker.source.slice(index, end)}`);
  }
  // The one that is handed over instead of called.
  for (const { index } of maker.source.matchAll(/, fsync\)/g))
    maker.replace('sync', index + 2, index + 7, '() => {}', 'without the fsync that is handed over');
}

function passChecks(maker: Maker): void {
  const names = [...Object.keys(PASSING), ...THROWING].join('|');
  for (const { index, 0: name } of maker.source.matchAll(
    new RegExp(`(?<!function |[.#])\\b(?:${names})(?=\\()`, 'g'),
  )) {
    const end = endOfCall(maker.source, index);
    // A declaration of a parameter or method of that name is no call.
    if (/^\s*(?::|=>|\{)/.test(maker.source.slice(end))) {
      if (!/^\s*:\s*(?:true|false|'|undefined|null)/.test(maker.source.slice(end))) continue;
    }
    const passing = PASSING[name];
    const call = maker.source.slice(index, end);
    const what = passing === undefined ? `without ${call}` : `${call} is ${passing}`;
    maker.replace('check', index, end, passing ?? 'void 0', what);
  }
}

function namedChecks(maker: Maker, checks: readonly (readonly [string, string])[]): void {
  for (const [text, replacement] of checks) {
    const start = maker.source.indexOf(text);
    const isOnce = start >= 0 && !maker.source.includes(text, start + 1);
    if (!isOnce)
      throw new Error(
        `mutants: \`${text}\` does not stand once in its file; test/faults/mutants/list.ts needs the new text`,
      );
    maker.replace('check', start, start + text.length, replacement, `\`${text}\` as \`${replacement}\``);
  }
}

function freeRenames(maker: Maker): void {
  for (const { index, 0: flag } of maker.source.matchAll(/RENAME\.(?:NOREPLACE|EXCHANGE)/g))
    maker.replace('flag', index, index + flag.length, '0', `a rename without ${flag.slice('RENAME.'.length)}`);
}

function swapSteps(maker: Maker): void {
  for (const block of blocksOf(maker.source)) {
    for (const [index, second] of block.entries()) {
      const first = block[index - 1];
      if (first === undefined || !isSwappable(first.text, second.text)) continue;
      const between = maker.source.slice(first.end, second.start);
      const what = `\`${shortOf(second.text)}\` before \`${shortOf(first.text)}\``;
      maker.replace('order', first.start, second.end, second.text + between + first.text, what);
    }
  }
}

function isSwappable(first: string, second: string): boolean {
  if (!STEP.test(first) || !STEP.test(second)) return false;
  // Cases of a switch exclude one another, and what is only named here is done later.
  if (/^\s*case\b/.test(second) || [first, second].some((one) => /^\s*const \w+ = \(.*=>/.test(one))) return false;
  if (/^\s*(?:\/\/.*\n\s*)*(?:return|throw|function|if \(.*\) (?:return|throw))\b/.test(second)) return false;
  // What the second one needs of the first cannot come after it.
  const declared = [...first.matchAll(/^\s*(?:const|let) (?:(\w+)|[{[]([^}\]]*)[}\]])/gm)].flatMap(([, one, several]) =>
    (one ?? several ?? '').split(/[,:]/).map((name) => name.trim()),
  );
  return !declared.some((name) => name !== '' && new RegExp(`\\b${name}\\b`).test(second));
}

function shortOf(text: string): string {
  const line = text.split('\n').find((one) => !one.trimStart().startsWith('//')) ?? '';
  return line.trim();
}
