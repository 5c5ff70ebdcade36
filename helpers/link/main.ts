/*
 * The process with the network: an inherited channel (3), the owner's file of trusted authorities or the null device (4),
 * the origin from its environment, and nothing else.
 */
import fs from 'node:fs';
import { serve } from '../runtime/serve.ts';
import { linkContract, openLink } from './handlers.ts';

const AUTHORITIES = 4;

const { NESSIE_ORIGIN: origin = '', NESSIE_ALLOW_LOOPBACK_HTTP: loopbackHttp } = process.env;
// The null device reads as nothing: the owner named no file.
const authorities = fs.readFileSync(AUTHORITIES, 'utf8');

const facts = { origin, loopbackHttp: loopbackHttp === '1', authorities: authorities === '' ? undefined : authorities };
const handlers = openLink(facts, (type, body) => served.tell(type, body));

const many = <Handle>(handle: Handle) => ({ phases: 'any', times: 'many', handle }) as const;

const served = serve({
  contract: linkContract,
  firstPhase: 'serving',
  table: {
    'link.call': many(handlers['link.call']),
    'link.open': many(handlers['link.open']),
    'link.send': many(handlers['link.send']),
    'link.close': many(handlers['link.close']),
  },
});
