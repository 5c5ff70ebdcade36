import type { SchemaChange } from '../migrate.ts';
import { accounts } from './101_accounts.ts';
import { executors } from './102_executors.ts';
import { pairings } from './103_pairings.ts';
import { audit } from './104_audit.ts';
import { pairingGuards } from './105_pairing_guards.ts';
import { channelsAndRuns } from './201_channels_and_runs.ts';
import { commands } from './202_commands.ts';
import { sessionsAndDrafts } from './203_sessions_and_drafts.ts';
import { unknownCommands } from './204_unknown_commands.ts';

/** Every change of the schema in the order in which it is applied: 1xx governance, 2xx work. */
export const migrations: readonly SchemaChange[] = [
  accounts,
  executors,
  pairings,
  audit,
  pairingGuards,
  channelsAndRuns,
  commands,
  sessionsAndDrafts,
  unknownCommands,
];
