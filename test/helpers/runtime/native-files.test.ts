import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { interpose, NativeError, syscall } from '../../../helpers/runtime/libc.ts';
import * as native from '../../../helpers/runtime/native-files.ts';
import {
  getLease,
  isClosedOnExec,
  LEASE,
  setClosedOnExec,
  setLease,
  tryLock,
} from '../../../helpers/runtime/native-locks.ts';

function refusal(code: string, call: string): (error: unknown) => boolean {
  return (error) => error instanceof NativeError && error.code === code && error.call === call;
}

const name = (text: string): Buffer => Buffer.from(text);

describe('native file calls', () => {
  let folder: string;
  let root: number;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'native-'));
    root = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  });
  afterEach(() => {
    fs.closeSync(root);
    fs.rmSync(folder, { recursive: true });
  });

  it('a walk beneath a root refuses links, parents, absolute paths and other mounts, and a plain open escapes', () => {
    fs.symlinkSync('/etc/passwd', path.join(folder, 'link'));
    fs.mkdirSync(path.join(folder, 'sub'));
    const how = { flags: fs.constants.O_RDONLY, resolve: native.RESOLVE_STRICT };
    assert.throws(() => native.openat2(root, name('link'), how), refusal('ELOOP', 'openat2'));
    assert.throws(() => native.openat2(root, name('../x'), how), refusal('EXDEV', 'openat2'));
    assert.throws(() => native.openat2(root, name('/etc/passwd'), how), refusal('EXDEV', 'openat2'));
    const top = fs.openSync('/', 'r');
    assert.throws(() => native.openat2(top, name('proc/version'), how), refusal('EXDEV', 'openat2'));
    fs.closeSync(top);
    const escaped = native.openat2(root, name('link'), { flags: fs.constants.O_RDONLY, resolve: 0 });
    assert.notEqual(fs.fstatSync(escaped).ino, fs.lstatSync(path.join(folder, 'link')).ino);
    fs.closeSync(escaped);
  });

  it('names are bytes: one that is not UTF-8 is opened, one with a NUL inside is refused before the kernel sees it', () => {
    const odd = Buffer.from([0x61, 0xff, 0xfe]);
    const how = { flags: fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, mode: 0o600, resolve: 0 };
    fs.closeSync(native.openat2(root, odd, how));
    assert.deepEqual(fs.readdirSync(folder, { encoding: 'buffer' }), [odd]);
    assert.throws(() => native.openat2(root, Buffer.from('a\0b'), how), refusal('EINVAL', 'openat2'));
  });

  it('status agrees with node and tells the mount', () => {
    fs.writeFileSync(path.join(folder, 'f'), 'hello');
    const told = native.statx(root, name('f'));
    const known = fs.lstatSync(path.join(folder, 'f'), { bigint: true });
    assert.equal(told.ino, known.ino);
    assert.equal(told.size, 5n);
    assert.equal(told.mtimeNs, known.mtimeNs);
    assert.equal(told.mode, Number(known.mode));
    assert.equal(told.nlink, 1);
    assert.equal(told.mountId, native.statx(root, Buffer.alloc(0)).mountId);
    assert.throws(() => native.statx(root, name('absent')), refusal('ENOENT', 'statx'));
  });

  it('an unnamed file gets a name without replacing, two names are exchanged, a rename refuses an existing target', () => {
    const flags = native.O_TMPFILE | fs.constants.O_RDWR;
    const file = native.openat2(root, name('.'), { flags, mode: 0o600, resolve: native.RESOLVE_STRICT });
    native.pwrite(file, Buffer.from('made'), 0n);
    native.fchmod(file, 0o755);
    native.futimens(file, 1_500_000_000n, 2_000_000_003n);
    native.fdatasync(file);
    native.linkDescriptor(file, root, name('made'));
    assert.throws(() => native.linkDescriptor(file, root, name('made')), refusal('EEXIST', 'linkat'));
    const status = native.statx(root, name('made'));
    assert.equal(status.mode & 0o7777, 0o755);
    assert.equal(status.mtimeNs, 2_000_000_003n);
    fs.writeFileSync(path.join(folder, 'other'), 'other');
    native.renameat2(root, name('made'), root, name('other'), native.RENAME.EXCHANGE);
    assert.equal(fs.readFileSync(path.join(folder, 'other'), 'utf8'), 'made');
    assert.throws(
      () => native.renameat2(root, name('made'), root, name('other'), native.RENAME.NOREPLACE),
      refusal('EEXIST', 'renameat2'),
    );
    native.mkdirat(root, name('d'), 0o700);
    native.unlinkat(root, name('d'), native.AT_REMOVEDIR);
    native.unlinkat(root, name('made'), 0);
    native.fsync(root);
    native.syncfs(root);
    assert.deepEqual(fs.readdirSync(folder), ['other']);
    fs.closeSync(file);
  });

  it('a copied range and an extended attribute arrive whole', () => {
    const from = fs.openSync(path.join(folder, 'from'), 'w+');
    const to = fs.openSync(path.join(folder, 'to'), 'w+');
    native.pwrite(from, Buffer.from('0123456789'), 0n);
    assert.equal(native.copyFileRange(from, 2n, to, 0n, 4), 4);
    assert.equal(fs.readFileSync(path.join(folder, 'to'), 'utf8'), '2345');
    native.fsetxattr(to, name('user.note'), Buffer.from('v'));
    assert.deepEqual(native.flistxattr(to).map(String), ['user.note']);
    assert.equal(String(native.fgetxattr(to, name('user.note'))), 'v');
    assert.throws(() => native.fgetxattr(to, name('user.none')), refusal('ENODATA', 'fgetxattr'));
    fs.closeSync(from);
    fs.closeSync(to);
  });

  it('a lease is refused while a writer is there, and reads as let go once a writer waits', () => {
    const file = path.join(folder, 'leased');
    fs.writeFileSync(file, 'x');
    const reader = fs.openSync(file, 'r');
    const writer = fs.openSync(file, 'r+');
    assert.throws(() => setLease(reader, LEASE.READ), refusal('EAGAIN', 'fcntl'));
    fs.closeSync(writer);
    setLease(reader, LEASE.READ);
    assert.equal(getLease(reader), LEASE.READ);
    // the writer asks without waiting: the kernel refuses it and starts to break the lease
    process.on('SIGIO', ignore);
    assert.throws(() => fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK), { code: 'EAGAIN' });
    assert.equal(getLease(reader), LEASE.NONE);
    setLease(reader, LEASE.NONE);
    process.off('SIGIO', ignore);
    fs.closeSync(reader);
  });

  it('a lock is held by one open file at a time, and close-on-exec is set and cleared', () => {
    const one = fs.openSync(path.join(folder, 'lock'), 'w');
    const two = fs.openSync(path.join(folder, 'lock'), 'r');
    assert.equal(tryLock(one), true);
    assert.equal(tryLock(two), false);
    fs.closeSync(one);
    assert.equal(tryLock(two), true);
    assert.equal(isClosedOnExec(two), true);
    setClosedOnExec(two, false);
    assert.equal(isClosedOnExec(two), false);
    fs.closeSync(two);
  });

  it('an interposer sees each call, may answer it, and goes away again', () => {
    const seen: string[] = [];
    interpose((call, _args, make) => {
      seen.push(call);
      if (call === 'fsync') throw new NativeError(call, os.constants.errno.EIO);
      return make();
    });
    try {
      assert.throws(() => native.fsync(root), refusal('EIO', 'fsync'));
      native.statx(root, name(''));
    } finally {
      interpose(undefined);
    }
    native.fsync(root);
    assert.deepEqual(seen, ['fsync', 'statx']);
  });

  it('an interposer is told the number of each call that changes something or brings it to the disk, from 1 on', () => {
    const seen: string[] = [];
    const note = (): void =>
      interpose((call, _args, make, number) => {
        seen.push(`${call} ${number ?? 'unnumbered'}`);
        return make();
      });
    const reading = { flags: fs.constants.O_RDONLY, resolve: 0 };
    const making = { flags: fs.constants.O_WRONLY | fs.constants.O_CREAT, mode: 0o600, resolve: 0 };
    const unnamed = { flags: native.O_TMPFILE | fs.constants.O_RDWR, mode: 0o600, resolve: 0 };
    try {
      note();
      const made = native.openat2(root, name('f'), making);
      fs.closeSync(native.openat2(root, name('f'), reading));
      fs.closeSync(native.openat2(root, name('.'), unnamed));
      native.statx(root, name('f'));
      native.pwrite(made, name('x'), 0n);
      assert.throws(() => native.mkdirat(root, name('f'), 0o700), refusal('EEXIST', 'mkdirat'));
      fs.closeSync(made);
      note();
      native.fsync(root);
    } finally {
      interpose(undefined);
    }
    const first = ['openat2 1', 'openat2 unnumbered', 'openat2 2', 'statx unnumbered', 'pwrite64 3', 'mkdirat 4'];
    assert.deepEqual(seen, [...first, 'fsync 1']);
  });

  it('an error names the call and the errno', () => {
    assert.throws(() => syscall('fsync', 9999), refusal('EBADF', 'fsync'));
  });
});

function ignore(): void {
  return undefined;
}
