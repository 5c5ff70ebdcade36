/*
 * Who may import what: one row a folder, its reason beside it. A target is written `helpers/protocol/frame.ts`, `node:fs`
 * or `npm:xstate/graph`. The first row that matches a file governs it; what the row does not list is refused, and a file
 * without a row is refused too. `imports.ts` judges, test/architecture.test.ts plants a violation of every row.
 */

/** One folder's allow list. `types` may be imported by `import type` alone, `values` in either way. */
export interface FolderRule {
  readonly name: string;
  readonly files: RegExp;
  readonly values: readonly RegExp[];
  readonly types?: readonly RegExp[];
  readonly reason: string;
}

/** A target that only some files may import, judged before the folder's own row so that the answer names the real reason. */
export interface Ban {
  readonly name: string;
  readonly target: RegExp;
  readonly exempt: RegExp;
  readonly kind: 'values' | 'values and types';
  readonly reason: string;
}

/** A target that a program must not load, whatever the number of files between them; values only. */
export interface ReachRule {
  readonly name: string;
  readonly from: RegExp;
  readonly target: RegExp;
  readonly reason: string;
}

const npm = (...names: string[]): RegExp => new RegExp(`^npm:(${names.join('|')})(/|$)`);
const node = /^node:/;
const calculating = /^node:(assert|assert\/strict|buffer|crypto|util)$/;
const machines = /^machines\//;
const machinesOwnRules = /^daemon\/(rules|scheduler|ledger\/memory)\.ts$/;
const protocolFolder = /^helpers\/protocol\//;
/** What the owner's files hold: pin, policy and confirmations, which the command line writes and promote believes. */
const ownersFiles = /^helpers\/promote\/protocol\.ts$/;
const anyProtocol = /^(helpers\/[^/]+|guest|server|daemon)\/protocol\.ts$/;
const runtimeForRoles = /^helpers\/runtime\/(?!libc\.ts|native-)/;

/** Judged first, in this order. */
export const bans: readonly Ban[] = [
  {
    name: 'tests stay out of the product',
    target: /^test\//,
    exempt: /^test\//,
    kind: 'values and types',
    reason: 'nothing outside test/ imports test/: what ships must not depend on what only tests run',
  },
  {
    name: 'one door to native calls',
    target: npm('koffi'),
    exempt: /^helpers\/runtime\/libc\.ts$/,
    kind: 'values and types',
    reason: 'helpers/runtime/libc.ts alone imports koffi: a caller of any C function undoes every other boundary',
  },
  {
    name: 'native calls for four programs',
    target: /^helpers\/runtime\/(libc|native-[a-z-]+)\.ts$/,
    exempt: /^(helpers\/(runtime|supervisor|workspace|promote|files|build)|test)\//,
    kind: 'values',
    reason:
      'supervisor, launch, workspace and promote use native calls; never a process that parses network or guest bytes',
  },
  {
    name: 'one codec',
    target: npm('msgpackr'),
    exempt: /^helpers\/protocol\/codec\.ts$/,
    kind: 'values and types',
    reason: 'helpers/protocol/codec.ts alone imports msgpackr: on its own it rebuilds objects from a peer’s bytes',
  },
  {
    name: 'one way to load code',
    target: /^node:(module|vm)$/,
    exempt: /^(helpers\/build|test)\//,
    kind: 'values',
    reason: 'require() and compiled strings load what no import rule sees',
  },
  {
    name: 'handlers stay with their process',
    target: /^helpers\/(?!protocol\/|runtime\/|build\/|files\/|supervisor\/)[^/]+\/(?!(protocol|privileges)\.ts$)/,
    exempt: /^(helpers|test)\//,
    kind: 'values and types',
    reason: 'a privileged process is reached by its messages, never by calling its code in another process',
  },
];

const helperLibraries: Readonly<Record<string, { libraries: readonly string[]; also?: readonly RegExp[] }>> = {
  link: { libraries: ['ws', 'undici'], also: [/^server\/protocol\.ts$/] },
  'key-store': { libraries: ['tweetnacl'] },
  workspace: {
    libraries: ['piscina', 're2js', 'diff', 'ignore', 'tweetnacl'],
    also: [/^helpers\/files\//, /^helpers\/runtime\//],
  },
  promote: { libraries: [], also: [/^helpers\/files\//, /^helpers\/runtime\//] },
  'vm-launcher': { libraries: [], also: [/^guest\/protocol\.ts$/] },
  vmm: { libraries: [] },
  'image-builder': { libraries: [] },
  'egress-gateway': { libraries: ['undici', 'ipaddr\\.js'] },
};

const helperRows: readonly FolderRule[] = Object.entries(helperLibraries).map(([name, { libraries, also = [] }]) => ({
  name: `helpers/${name}/`,
  files: new RegExp(`^helpers/${name}/`),
  values: [new RegExp(`^helpers/${name}/`), protocolFolder, runtimeForRoles, node, npm('zod', ...libraries), ...also],
  reason:
    'a helper knows its own folder, the frames and the runtime: no other helper, no machine, nobody who orders it',
}));

/** The first row whose `files` match governs a file. */
export const folders: readonly FolderRule[] = [
  {
    name: 'test/kit/',
    files: /^test\/kit\//,
    values: [/^test\/kit\//, machines, node, npm('xstate')],
    types: [/^actors\//, anyProtocol, protocolFolder],
    reason: 'it ships as nessie-executor/testing, so it needs no more than the machines it replays',
  },
  { name: 'test/', files: /^test\//, values: [/./], reason: 'tests look at everything' },
  {
    name: 'any protocol.ts',
    files: anyProtocol,
    values: [npm('zod'), protocolFolder],
    reason: 'both ends import it: no handler and no other process’s messages may come along',
  },
  {
    name: 'any privileges.ts',
    files: /^helpers\/(?!runtime\/)[^/]+\/privileges\.ts$/,
    values: [/^helpers\/runtime\/privileges\.ts$/],
    reason: 'it is one constant that an auditor reads: nothing computed elsewhere decides a right',
  },
  {
    name: 'helpers/protocol/registry.ts',
    files: /^helpers\/protocol\/registry\.ts$/,
    values: [protocolFolder],
    types: [anyProtocol],
    reason: 'it lists every message by type; a value import would load every protocol into every process',
  },
  {
    name: 'helpers/protocol/',
    files: protocolFolder,
    values: [protocolFolder, calculating, npm('zod', 'canonicalize', 'msgpackr', '@noble/ed25519', 'tweetnacl')],
    reason: 'every process loads it: nothing in it may open, listen or spawn',
  },
  {
    name: 'helpers/table.ts',
    files: /^helpers\/table\.ts$/,
    values: [/^helpers\/[^/]+\/privileges\.ts$/],
    types: [/^helpers\/runtime\//],
    reason: 'the one table lists declarations and nothing else, so that an auditor reads it alone',
  },
  {
    name: 'helpers/runtime/launch.ts, probe.ts, start.ts',
    files: /^helpers\/runtime\/(launch|probe|start|twins|inspect)\.ts$/,
    values: [/^helpers\/runtime\//, /^helpers\/table\.ts$/, /^helpers\/protocol\/frame\.ts$/, node],
    reason: 'they start rows by name, so they read the one table, which no role loads',
  },
  {
    name: 'helpers/runtime/',
    files: /^helpers\/runtime\//,
    values: [/^helpers\/runtime\//, /^helpers\/protocol\/(frame|codec|envelope|errors|ids)\.ts$/, node, npm('koffi')],
    reason: 'it starts and confines every process, so it depends on no one of them',
  },
  {
    name: 'helpers/supervisor/',
    files: /^helpers\/supervisor\//,
    values: [
      /^helpers\/supervisor\//,
      /^helpers\/runtime\//,
      /^helpers\/table\.ts$/,
      /^helpers\/protocol\/frame\.ts$/,
      node,
    ],
    reason: 'it holds the union of all rights: no machine, no codec, no helper’s code',
  },
  {
    name: 'helpers/files/',
    files: /^helpers\/files\//,
    values: [/^helpers\/files\//, protocolFolder, /^helpers\/runtime\//, node],
    reason: 'what workspace and promote both need, and no more than either has',
  },
  {
    name: 'helpers/build/',
    files: /^helpers\/build\//,
    values: [
      /^helpers\/(build|runtime|protocol)\//,
      /^helpers\/table\.ts$/,
      /^helpers\/[^/]+\/privileges\.ts$/,
      machines,
      anyProtocol,
      /^daemon\/config\.ts$/,
      node,
      npm('elkjs', 'esbuild', '@swc/core', 'mocha', 'xstate', 'zod'),
    ],
    types: [/^daemon\//],
    reason: 'it builds and checks what ships and is never part of it',
  },
  ...helperRows,
  {
    name: 'actors/',
    files: /^actors\//,
    values: [/^actors\//, anyProtocol, protocolFolder, node, npm('xstate')],
    types: [/^machines\/(.+\/)?types\.ts$/],
    reason:
      'an actor meets a contract (types.ts) with messages; a machine or a handler would tie the two sides together',
  },
  {
    name: 'guest/',
    files: /^guest\//,
    values: [/^guest\//, protocolFolder, node],
    reason: 'it runs inside the virtual machine and is hostile in the eyes of everything outside',
  },
  {
    name: 'server/*/rules.ts',
    files: /^server\/[^/]+\/rules\.ts$/,
    values: [machines, /^server\/[^/]+\/rules\.ts$/],
    types: [/^server\//, protocolFolder],
    reason: 'rules are pure, so that the simulation runs the very file that ships',
  },
  {
    name: 'server/page/',
    files: /^server\/page\//,
    values: [/^server\/page\//, npm('preact', 'tweetnacl', 'diff')],
    types: [/^server\//, protocolFolder, /^machines\/[^/]+\/types\.ts$/],
    reason: 'it runs in a browser: no Node module and no server code is bundled into it',
  },
  {
    name: 'server/',
    files: /^server\//,
    values: [
      /^server\//,
      machines,
      protocolFolder,
      /^helpers\/runtime\/(start|installation|users)\.ts$/,
      /^helpers\/table\.ts$/,
      /^actors\/(helper-client|key-store)\.ts$/,
      node,
      npm('@fastify/[^/]+', '@modelcontextprotocol/sdk', 'fastify', 'fastify-type-provider-zod', 'kysely', 'libsql'),
      npm('pg', 'pino', 'prom-client', 'tweetnacl', 'ws', 'xstate', 'zod'),
    ],
    types: [/^helpers\/key-store\/protocol\.ts$/],
    reason: 'the control plane shares machines and messages with the daemon, never the daemon’s or a helper’s code',
  },
  {
    name: 'machines/trace/simulate/',
    files: /^machines\/trace\/simulate\//,
    values: [machines, /^server\/[^/]+\/rules\.ts$/, machinesOwnRules, npm('xstate')],
    types: [anyProtocol, protocolFolder, /^daemon\/ledger\/records\.ts$/],
    reason: 'a simulated world is repeatable only while nothing impure is in it; its rules are those that ship',
  },
  {
    name: 'machines/',
    files: machines,
    values: [/^machines\/(?!trace\/simulate\/)/, npm('xstate')],
    types: [anyProtocol, protocolFolder],
    reason: 'machines are pure: both sides run them, traces replay them, simulation explores them',
  },
  {
    name: 'daemon/rules.ts, scheduler.ts, ledger/memory.ts',
    files: machinesOwnRules,
    values: [],
    types: [/^daemon\//, protocolFolder, /^machines\/[^/]+\/types\.ts$/],
    reason: 'what the machine itself decides is pure, so that the simulation runs the very files that ship',
  },
  {
    name: 'daemon/trace-page/',
    files: /^daemon\/trace-page\//,
    values: [/^daemon\/trace-page\//, /^machines\/(shape|trace\/tell)\.ts$/],
    types: [/^machines\//],
    reason:
      'it runs in a browser beside a stranger’s trace: no Node module, no library and no machine is bundled into it',
  },
  {
    name: 'daemon/cli/, start.ts, demo/',
    files: /^daemon\/(cli|demo|start\.ts)/,
    values: [
      /^daemon\//,
      machines,
      /^actors\//,
      /^helpers\/table\.ts$/,
      protocolFolder,
      ownersFiles,
      /^server\/protocol\.ts$/,
      /^helpers\/runtime\/(probe|start|twins|inspect|configuration|installation|exits|launch-steps)\.ts$/,
      node,
      npm(
        'xstate',
        'commander',
        'chokidar',
        'lowdb',
        'pino',
        'fs-extra',
        'uqr',
        'yaml',
        'zod',
        '@modelcontextprotocol/sdk',
      ),
    ],
    types: [anyProtocol],
    reason: 'the owner’s commands start processes and talk to them; they never call a helper’s code',
  },
  {
    name: 'daemon/',
    files: /^daemon\//,
    values: [
      /^daemon\/(?!cli\/|demo\/|start\.ts)/,
      machines,
      /^actors\//,
      /^helpers\/table\.ts$/,
      protocolFolder,
      ownersFiles,
      /^server\/protocol\.ts$/,
      /^helpers\/supervisor\/request\.ts$/,
      node,
      npm('xstate', 'chokidar', 'lowdb', 'pino', 'fs-extra', 'zod'),
    ],
    types: [anyProtocol],
    reason: 'the only place where machines meet actors; helpers are asked by message',
  },
];

/** Judged over whole programs. */
export const reaches: readonly ReachRule[] = [
  {
    name: 'no native calls where foreign bytes are parsed',
    from: /^(helpers\/(link|key-store|vm-launcher|egress-gateway)\/main|daemon\/main|server\/main|guest\/main)\.ts$/,
    target: npm('koffi'),
    reason: 'a process that parses network or guest bytes, or holds the key, must not be able to call any C function',
  },
  {
    name: 'supervisor reads no message',
    from: /^helpers\/supervisor\/main\.ts$/,
    target: npm('msgpackr', 'zod', 'xstate'),
    reason: 'the process with the union of all rights has no codec and no machine',
  },
];
