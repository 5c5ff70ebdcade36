import { cli } from './cli/privileges.ts';
import { daemon } from './daemon/privileges.ts';
import { keyStore } from './key-store/privileges.ts';
import { link } from './link/privileges.ts';
import { promote } from './promote/privileges.ts';
import type { Privileges, RowName } from './runtime/privileges.ts';
import { supervisor } from './supervisor/privileges.ts';
import { workspace } from './workspace/privileges.ts';

/** THE table: every program that the product runs on a machine, with all that it may do. */
export const TABLE: Readonly<Record<RowName, Privileges>> = {
  supervisor,
  cli,
  daemon,
  link,
  'key-store': keyStore,
  workspace,
  promote,
};
