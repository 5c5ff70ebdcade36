/*
 * Every message that one process of the product sends to another, once, named after the process that answers or tells it.
 * The compiler refuses a message that is missing here and one that no protocol.ts declares; so a reader who asks what may
 * cross a boundary needs this page alone. The channel and the pairing calls are the control plane's side of one origin.
 */
import type { DaemonRequest } from '../../daemon/protocol.ts';
import type { ChannelQuestion, pairingCalls } from '../../server/protocol.ts';
import type { KeyStoreRequest } from '../key-store/protocol.ts';
import type { LinkEvent, LinkRequest } from '../link/protocol.ts';
import type { PromoteEvent, PromoteRequest } from '../promote/protocol.ts';
import type { WorkspaceRequest } from '../workspace/protocol.ts';

/** Programs that answer or tell a message. */
export type Owner = 'daemon' | 'key-store' | 'link' | 'workspace' | 'promote' | 'server';

/** One message: who may send it to whom, and what it does where it arrives. */
export interface Registered {
  readonly kind: 'request' | 'event' | 'question' | 'call';
  readonly owner: Owner;
  /** Who asks, or who is told. */
  readonly peer: 'daemon' | 'server' | 'daemon or server' | 'cli';
  /** `reads` may be asked again without a second effect; `acts` changes something at the owner; `sends` puts bytes on the network; `tells` is an event. */
  readonly effect: 'reads' | 'acts' | 'sends' | 'tells';
}

type Requests = DaemonRequest | KeyStoreRequest | LinkRequest | WorkspaceRequest | PromoteRequest;
type Events = LinkEvent | PromoteEvent;
type Questions = `channel.${ChannelQuestion}`;
type Calls = `pairing.${keyof typeof pairingCalls}`;

/** Name of any message. */
export type MessageName = Requests | Events | Questions | Calls;

const row =
  (kind: Registered['kind'], owner: Owner, peer: Registered['peer']) =>
  (effect: Registered['effect']): Registered => ({ kind, owner, peer, effect });

const cli = row('request', 'daemon', 'cli');
const keyStore = row('request', 'key-store', 'daemon or server');
const link = row('request', 'link', 'daemon');
const linkTells = row('event', 'link', 'daemon');
const workspace = row('request', 'workspace', 'daemon');
const promote = row('request', 'promote', 'daemon');
const promoteTells = row('event', 'promote', 'daemon');
const channel = row('question', 'server', 'daemon');
const pairing = row('call', 'server', 'daemon');

/** Every message by its name. */
export const registry: { readonly [Name in MessageName]: Registered } = {
  'daemon.status': cli('reads'),
  'daemon.pair': cli('acts'),
  'daemon.pairing': cli('reads'),
  'daemon.pair-answer': cli('acts'),
  'daemon.pair-cancel': cli('acts'),
  'daemon.drafts': cli('reads'),
  'daemon.discard': cli('acts'),
  'daemon.history': cli('reads'),
  'daemon.file-system': cli('acts'),
  'daemon.undo-plan': cli('reads'),
  'daemon.undo': cli('acts'),
  'daemon.difference': cli('reads'),
  'daemon.root': cli('reads'),
  'daemon.rotate-key': cli('acts'),
  'daemon.commands': cli('reads'),
  'daemon.trace': cli('reads'),
  'daemon.repair': cli('acts'),
  'daemon.forget': cli('acts'),
  'daemon.stop': cli('acts'),
  'keystore.status': keyStore('reads'),
  'keystore.generate': keyStore('acts'),
  'keystore.sign': keyStore('acts'),
  'keystore.rotate-prepare': keyStore('acts'),
  'keystore.rotate-sign': keyStore('acts'),
  'keystore.rotate-commit': keyStore('acts'),
  'keystore.rotate-abandon': keyStore('acts'),
  'keystore.erase': keyStore('acts'),
  'link.call': link('sends'),
  'link.open': link('sends'),
  'link.send': link('sends'),
  'link.close': link('sends'),
  'link.message': linkTells('tells'),
  'link.closed': linkTells('tells'),
  'workspace.root': workspace('reads'),
  'workspace.operate': workspace('acts'),
  'workspace.cancel': workspace('acts'),
  'workspace.drafts': workspace('reads'),
  'workspace.discard': workspace('acts'),
  'workspace.freeze': workspace('acts'),
  'workspace.release': workspace('acts'),
  'workspace.difference': workspace('reads'),
  'promote.recover': promote('acts'),
  'promote.repair': promote('acts'),
  'promote.apply': promote('acts'),
  'promote.history': promote('reads'),
  'promote.file-system': promote('acts'),
  'promote.undo-plan': promote('reads'),
  'promote.undo': promote('acts'),
  'promote.cancel': promote('acts'),
  'promote.progress': promoteTells('tells'),
  'channel.session.challenge': channel('reads'),
  'channel.session.prove': channel('acts'),
  'channel.work': channel('acts'),
  'channel.control': channel('acts'),
  'channel.heartbeat': channel('acts'),
  'channel.receipts': channel('acts'),
  'channel.descriptor': channel('acts'),
  'channel.rotation': channel('acts'),
  'channel.progress': channel('acts'),
  'pairing.enrol': pairing('acts'),
  'pairing.start': pairing('acts'),
  'pairing.poll': pairing('acts'),
  'pairing.claim': pairing('acts'),
  'pairing.confirm': pairing('acts'),
  'pairing.cancel': pairing('acts'),
  'pairing.replace': pairing('acts'),
};
