/*
 * The process that changes the person's files: one recovery and at most one promotion or undo, then it ends. It is started confined,
 * with its channel at 3 and the folders that it works between, open, at 4 to 8; it opens nothing by a path but the boot id.
 */
import { readFileSync } from 'node:fs';
import { forbiddenChains } from '../runtime/folder-chains.ts';
import { serve } from '../runtime/serve.ts';
import { PromoteHandlers } from './handlers.ts';
import { promoteEvents, promoteRefusals, promoteRequests } from './protocol.ts';

// A lease tells of a waiting writer by this signal, which would end the process; the lease is asked instead.
process.on('SIGIO', () => undefined);

const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
const slot = Number(process.env['NESSIE_SLOT'] ?? 0);
const forbidden = forbiddenChains(process.env['NESSIE_FORBIDDEN_FOLDERS'] ?? '');
const handlers = new PromoteHandlers(
  { root: 4, draft: 5, own: 6, owner: 7, configuration: 8, forbidden },
  bootId,
  (phase, done, total) => server.tell('promote.progress', { phase, done, total }),
  (sentence) => void process.stderr.write(`${sentence}\n`),
);

const contract = { requests: promoteRequests, events: promoteEvents, refusals: promoteRefusals };

/** Nothing is applied to a root that is not settled, and nothing follows an apply. */
type Phase = 'unsettled' | 'settled' | 'applying';

const server = serve<typeof contract, Phase>({
  contract,
  firstPhase: 'unsettled',
  table: {
    'promote.recover': {
      phases: ['unsettled', 'settled'],
      times: 'many',
      handle: (body) => {
        const recovered = handlers.recover(body);
        server.enter('settled');
        return { slot, ...recovered };
      },
    },
    'promote.repair': { phases: ['settled'], times: 'once', handle: (body) => handlers.repair(body) },
    'promote.apply': {
      phases: ['settled'],
      times: 'once',
      handle: (body) => {
        server.enter('applying');
        return handlers.apply(body);
      },
    },
    'promote.history': { phases: ['settled'], times: 'many', handle: () => handlers.history() },
    'promote.file-system': { phases: ['settled'], times: 'many', handle: () => handlers.fileSystem() },
    'promote.undo-plan': { phases: ['settled'], times: 'many', handle: (body) => handlers.undoPlan(body) },
    'promote.undo': {
      phases: ['settled'],
      times: 'once',
      handle: (body) => {
        server.enter('applying');
        return handlers.undo(body);
      },
    },
    'promote.cancel': { phases: 'any', times: 'many', handle: () => handlers.cancel() },
  },
  atEnd: () => handlers.end(),
});
