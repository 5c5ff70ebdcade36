/*
 * The process that holds the key: an inherited channel (3), an inherited private folder (4), and nothing else.
 */
import { serve } from '../runtime/serve.ts';
import { openKeyStore } from './handlers.ts';
import { keyStoreRefusals, keyStoreRequests } from './protocol.ts';

const FOLDER = 4;

const handlers = openKeyStore(FOLDER, process.getuid?.() ?? -1);

const many = <Handle>(handle: Handle) => ({ phases: 'any', times: 'many', handle }) as const;

serve({
  contract: { requests: keyStoreRequests, events: {}, refusals: keyStoreRefusals },
  firstPhase: 'serving',
  table: {
    'keystore.status': many(handlers['keystore.status']),
    'keystore.generate': many(handlers['keystore.generate']),
    'keystore.sign': many(handlers['keystore.sign']),
    'keystore.rotate-prepare': many(handlers['keystore.rotate-prepare']),
    'keystore.rotate-sign': many(handlers['keystore.rotate-sign']),
    'keystore.rotate-commit': many(handlers['keystore.rotate-commit']),
    'keystore.rotate-abandon': many(handlers['keystore.rotate-abandon']),
    'keystore.erase': many(handlers['keystore.erase']),
  },
});
