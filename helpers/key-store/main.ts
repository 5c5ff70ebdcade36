/*
 * The process that holds the key: an inherited channel (3), an inherited private folder (4), and nothing else.
 */
import { serveInTurn } from '../runtime/serve-in-turn.ts';
import { openKeyStore } from './handlers.ts';
import { keyStoreRefusals, keyStoreRequests } from './protocol.ts';

const FOLDER = 4;

const { handlers, afterwards } = openKeyStore(FOLDER, process.getuid?.() ?? -1);

serveInTurn({
  contract: { requests: keyStoreRequests, events: {}, refusals: keyStoreRefusals },
  handlers,
  afterwards,
});
