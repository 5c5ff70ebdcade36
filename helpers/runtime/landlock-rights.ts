/** A file right of Landlock and the ABI that brought it. */
type Right = { readonly bit: bigint; readonly since: number };

/** Access rights of Landlock for files by name (linux/landlock.h, landlock(7)). */
export const LANDLOCK_RIGHTS = {
  EXECUTE: { bit: 1n << 0n, since: 1 },
  WRITE_FILE: { bit: 1n << 1n, since: 1 },
  READ_FILE: { bit: 1n << 2n, since: 1 },
  READ_DIR: { bit: 1n << 3n, since: 1 },
  REMOVE_DIR: { bit: 1n << 4n, since: 1 },
  REMOVE_FILE: { bit: 1n << 5n, since: 1 },
  MAKE_CHAR: { bit: 1n << 6n, since: 1 },
  MAKE_DIR: { bit: 1n << 7n, since: 1 },
  MAKE_REG: { bit: 1n << 8n, since: 1 },
  MAKE_SOCK: { bit: 1n << 9n, since: 1 },
  MAKE_FIFO: { bit: 1n << 10n, since: 1 },
  MAKE_BLOCK: { bit: 1n << 11n, since: 1 },
  MAKE_SYM: { bit: 1n << 12n, since: 1 },
  REFER: { bit: 1n << 13n, since: 2 },
  TRUNCATE: { bit: 1n << 14n, since: 3 },
  IOCTL_DEV: { bit: 1n << 15n, since: 5 },
} as const satisfies Record<string, Right>;

/** A file right of Landlock by name. */
export type LandlockRight = keyof typeof LANDLOCK_RIGHTS;

/** Rights that a rule on something that is no directory may name; the kernel answers EINVAL to the others. */
export const RIGHTS_OF_FILES: bigint =
  LANDLOCK_RIGHTS.EXECUTE.bit |
  LANDLOCK_RIGHTS.WRITE_FILE.bit |
  LANDLOCK_RIGHTS.READ_FILE.bit |
  LANDLOCK_RIGHTS.TRUNCATE.bit |
  LANDLOCK_RIGHTS.IOCTL_DEV.bit;
