import type { SchemaChange } from '../migrate.ts';
import { accounts } from './101_accounts.ts';
import { executors } from './102_executors.ts';
import { pairings } from './103_pairings.ts';
import { audit } from './104_audit.ts';

/** Every change of the schema in the order in which it is applied: 1xx governance, 2xx work. */
export const migrations: readonly SchemaChange[] = [accounts, executors, pairings, audit];
