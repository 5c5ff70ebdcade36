/* file.write, file.append, file.patch and file.chmod: changes of one file. */
import { parsePath, pathTextOf, WalkRefused, type PathNames } from '../files/walk.ts';
import { digestBytes, readWhole } from '../files/digest.ts';
import type { Base, Step } from '../files/draft-index.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import { assertMayChange, baseAt, changing, notChangeable, step, withFile, type Call, type Changing } from './call.ts';
import { INLINE_LIMIT_BYTES } from './digests.ts';
import { denied, nothingThere, OperationFailed, unavailable } from './failures.ts';
import { assertFits, writeAll, type OpenDraft } from './open-draft.ts';
import { patchBytes } from './patching.ts';
import type { Place, View } from './view.ts';

const NEW_FILE_MODE = 0o644;
const NEW_FOLDER_MODE = 0o755;
/** A larger file is not patched, bytes. */
const PATCH_LIMIT_BYTES = 8_388_608;
/** Content up to this size is patched at once; a larger one leaves the main loop. */
const PATCH_INLINE_BYTES = 65_536;

type Written = OperationSuccess<'file.write'>;

/** Steps that make the missing folders above a path. Throws OperationFailed where one is missing and may not be made. */
export function parentSteps(view: View, names: PathNames, mayMake: boolean): Step[] {
  const steps: Step[] = [];
  for (let length = 1; length < names.length; length += 1) {
    const parent = names.slice(0, length);
    const place = view.place(parent);
    if (place.of !== 'nothing') {
      if (place.kind === 'link') throw new WalkRefused('link');
      if (place.kind !== 'directory') throw new WalkRefused('not-a-folder');
      continue;
    }
    if (!mayMake) throw unavailable('the folder does not exist; set createParents to make it');
    const base = view.entryAt(parent)?.base ?? null;
    steps.push(step(parent, base, { type: 'directory', mode: NEW_FOLDER_MODE }));
  }
  return steps;
}

/** Writes a whole file into the draft. */
export function writeFile(call: Call, args: OperationArguments<'file.write'>): Promise<Written> {
  const names = parsePath(args.path);
  const bytes = Buffer.from(args.content, 'utf8');
  return changing(call, async ({ view, make }) => {
    assertMayChange(view, names);
    const parents = parentSteps(view, names, args.createParents);
    const place = view.place(names);
    if (place.of !== 'nothing') assertMayReplace(place, args.overwrite);
    const base = await baseAt(call, view, names, place);
    const draft = await make();
    return putContent(draft, names, { base, bytes, mode: modeOf(place) }, parents);
  });
}

function assertMayReplace(place: Exclude<Place, { of: 'nothing' }>, overwrite: boolean): void {
  if (place.kind === 'directory') throw denied('there is a folder at this path; choose another name');
  if (place.kind !== 'file') throw notChangeable(place.kind);
  if (!overwrite) throw denied('there is a file at this path; set overwrite to replace it');
}

function modeOf(place: Place): number {
  if (place.of === 'draft' && place.kind === 'file') return place.now.mode;
  return place.of === 'root' ? place.status.mode & 0o777 : NEW_FILE_MODE;
}

interface NewContent {
  readonly base: Base | null;
  readonly bytes: Uint8Array;
  readonly mode: number;
}

async function putContent(
  draft: OpenDraft,
  names: PathNames,
  { base, bytes, mode }: NewContent,
  parents: readonly Step[] = [],
): Promise<Written> {
  draft.assertRoom(0, 0);
  const sha256 = digestBytes(bytes);
  const content = await draft.addContent((descriptor) => writeAll(descriptor, bytes, 0));
  await applyWith(
    draft,
    [content],
    [...parents, step(names, base, { type: 'file', content, bytes: bytes.length, mode, sha256 })],
  );
  return { success: true, path: pathTextOf(names), byteCount: bytes.length, sha256 };
}

/** Applies steps that name new content files; those that no entry names afterwards are removed, also when it fails. */
export async function applyWith(draft: OpenDraft, contents: readonly number[], steps: readonly Step[]): Promise<void> {
  let named = new Set<number>();
  try {
    await draft.apply(steps);
    named = new Set(steps.map(({ entry }) => (entry?.now.type === 'file' ? entry.now.content : 0)));
  } finally {
    for (const content of contents) if (!named.has(content)) draft.dropContent(content);
  }
}

/** The file at a path that is changed in place. Throws OperationFailed. */
function fileAt(view: View, names: PathNames): Extract<Place, { kind: unknown }> {
  assertMayChange(view, names);
  const place = view.place(names);
  if (place.of === 'nothing') throw nothingThere();
  if (place.kind === 'directory') throw new WalkRefused('not-a-file');
  if (place.kind !== 'file') throw notChangeable(place.kind);
  return place;
}

/** Appends text to a file. */
export function appendFile(
  call: Call,
  args: OperationArguments<'file.append'>,
): Promise<OperationSuccess<'file.append'>> {
  const names = parsePath(args.path);
  const added = Buffer.from(args.content, 'utf8');
  return changing(call, async ({ view, make }) => {
    const place = fileAt(view, names);
    if (place.of === 'root') assertFits(Number(place.status.size) + added.length);
    const base = await baseAt(call, view, names, place);
    const draft = await make();
    const made: LargeContent[] = [];
    const whole = await withFile(call, view, names, async ({ descriptor, bytes }) => {
      if (bytes <= INLINE_LIMIT_BYTES) return Buffer.concat([readWhole(descriptor, bytes), added]);
      draft.assertRoom(0, bytes + added.length);
      made.push(await appendInPool(call, draft, descriptor, added));
      return undefined;
    });
    if (whole) return putContent(draft, names, { base, bytes: whole, mode: modeOf(place) });
    const last = made.at(-1);
    if (!last) throw new TypeError('content was neither in memory nor in the draft');
    const { bytes, sha256 } = last;
    const now = { type: 'file' as const, mode: modeOf(place), ...last };
    await applyWith(
      draft,
      made.map(({ content }) => content),
      [step(names, base, now)],
    );
    return { success: true, path: pathTextOf(names), byteCount: bytes, sha256 };
  });
}

interface LargeContent {
  readonly content: number;
  readonly bytes: number;
  readonly sha256: string;
}

async function appendInPool(call: Call, draft: OpenDraft, from: number, added: Buffer): Promise<LargeContent> {
  const { pool } = call.services;
  const ending = call.ending.mark;
  let digest = { sha256: '', bytes: 0 };
  const content = await draft.addContent(async (to) => {
    const copied = await pool.run('copy', { from, to, ending });
    await writeAll(to, added, copied.bytes);
    digest = await pool.run('digest', { descriptor: to, ending });
  });
  return { content, ...digest };
}

/** Replaces parts of a file that still has the expected digest. */
export function patchFile(call: Call, args: OperationArguments<'file.patch'>): Promise<OperationSuccess<'file.patch'>> {
  const names = parsePath(args.path);
  return changing(call, async (work) => {
    const place = fileAt(work.view, names);
    const patched = await patchedBytes(call, work, names, args);
    const base = await baseAt(call, work.view, names, place);
    return putContent(await work.make(), names, { base, bytes: patched, mode: modeOf(place) });
  });
}

function patchedBytes(
  call: Call,
  { view }: Changing,
  names: PathNames,
  { expectedSha256, edits }: OperationArguments<'file.patch'>,
): Promise<Uint8Array> {
  return withFile(call, view, names, async ({ descriptor, bytes }, sha256) => {
    if (sha256 !== expectedSha256) {
      throw new OperationFailed(
        'PATCH_STALE',
        `the file now has the digest ${sha256}; read it again and make the edits against that`,
      );
    }
    if (bytes > PATCH_LIMIT_BYTES)
      throw denied(`the file has ${bytes} bytes; up to ${PATCH_LIMIT_BYTES} can be patched`);
    const patched =
      bytes <= PATCH_INLINE_BYTES
        ? patchBytes(readWhole(descriptor, bytes), edits, () => call.ending.check())
        : await call.services.pool.run('patch', { descriptor, bytes, edits, ending: call.ending.mark });
    if ('conflict' in patched) throw new OperationFailed('PATCH_CONFLICT', patched.conflict);
    return patched.bytes;
  });
}

const EXECUTE = 0o111;
const READ = 0o444;

/** Sets or clears the executable bit: who may read may then run, or nobody may. */
export function setExecutable(
  call: Call,
  { path, executable }: OperationArguments<'file.chmod'>,
): Promise<OperationSuccess<'file.chmod'>> {
  const names = parsePath(path);
  return changing(call, async ({ view, make }) => {
    const place = fileAt(view, names);
    const base = await baseAt(call, view, names, place);
    const before = modeOf(place);
    const mode = executable ? before | ((before & READ) >> 2) : before & ~EXECUTE;
    const answer = { success: true as const, path: pathTextOf(names), mode: mode.toString(8).padStart(3, '0') };
    if (mode === before) return answer;
    const kept = place.of === 'draft' && place.kind === 'file' ? place.now : undefined;
    const now = kept ?? { type: 'file' as const, content: 0, ...sizeOf(base) };
    const draft = await make();
    await draft.apply([step(names, base, { ...now, mode })]);
    return answer;
  });
}

function sizeOf(base: Base | null): { bytes: number; sha256: string } {
  if (base?.type !== 'file') throw nothingThere();
  return { bytes: base.bytes, sha256: base.sha256 };
}
