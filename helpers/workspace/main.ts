/*
 * workspace: started confined by runtime/launch, reads below its root and writes below its drafts folder.
 *
 *   3 channel of `daemon`    4 root, an open folder    5 drafts, an open folder
 */
import { fileURLToPath } from 'node:url';

import { serve } from '../runtime/serve.ts';
import { makeHandlers, makeServices } from './handlers.ts';
import { workspaceRefusals, workspaceRequests } from './protocol.ts';

const services = makeServices({
  root: 4,
  drafts: 5,
  tasks: { filename: fileURLToPath(new URL('./workspace-worker.mjs', import.meta.url)) },
  forbiddenFolders: process.env['NESSIE_FORBIDDEN_FOLDERS'] ?? '',
});
const handlers = makeHandlers(services);

serve({
  contract: { requests: workspaceRequests, events: {}, refusals: workspaceRefusals },
  firstPhase: 'serving',
  table: {
    'workspace.root': { phases: 'any', times: 'many', handle: handlers['workspace.root'] },
    'workspace.operate': { phases: 'any', times: 'many', handle: handlers['workspace.operate'] },
    'workspace.cancel': { phases: 'any', times: 'many', handle: handlers['workspace.cancel'] },
    'workspace.drafts': { phases: 'any', times: 'many', handle: handlers['workspace.drafts'] },
    'workspace.discard': { phases: 'any', times: 'many', handle: handlers['workspace.discard'] },
    'workspace.freeze': { phases: 'any', times: 'many', handle: handlers['workspace.freeze'] },
    'workspace.release': { phases: 'any', times: 'many', handle: handlers['workspace.release'] },
    'workspace.difference': { phases: 'any', times: 'many', handle: handlers['workspace.difference'] },
  },
});
