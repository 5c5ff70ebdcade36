/*
 * The command line: every command, its options and its examples. What a command does lies in a file of its own, which is
 * loaded when the command runs and not before.
 */
import { Argument, Command, Option } from 'commander';
import { EXIT_CODES } from './failure.ts';
import type { PairWish } from './pair.ts';
import type { SimulateWish } from './simulate.ts';
import { knownPlaces, placesIn, placesOf } from './places.ts';
import type { Places } from './places.ts';
import { ownTerminal } from './terminal.ts';
import type { Form } from './trace-export.ts';

type ReviewOptions = {
  readonly approve: boolean;
  readonly withdraw?: boolean;
  readonly json: boolean;
  readonly pager: boolean;
};

type Selection = { readonly name?: string; readonly in?: string };

const uid = (): number => process.getuid?.() ?? -1;

/** Builds the program; `version` is asked for only by --version. */
export function buildProgram(version: string): Command {
  const program = new Command('nessie-executor')
    .description(
      'Gives an agent a computer without giving it yours: pairs this machine, shows and confirms what agents drafted.',
    )
    .version(version, '--version', 'print version and digest of the installation')
    .option('--name <name>', 'which executor of this machine', 'default')
    .option('--in <folder>', 'an executor that keeps state and configuration in one folder, such as a trial')
    .showHelpAfterError('Say --help for what there is.')
    .exitOverride()
    .enablePositionalOptions()
    .addHelpText('after', () => `\nExit codes:\n${exitLines().join('\n')}`);
  const selected = (): Places => {
    const { name = 'default', in: folder } = program.opts<Selection>();
    return folder === undefined ? placesOf(name, process.env, uid()) : placesIn(folder);
  };
  const all = (): Places[] => {
    const { name, in: folder } = program.opts<Selection>();
    if (folder !== undefined) return [placesIn(folder)];
    return program.getOptionValueSource('name') === 'cli' && name !== undefined
      ? [placesOf(name, process.env, uid())]
      : knownPlaces(process.env, uid());
  };
  addPair(program, selected);
  addRunning(program, selected, all);
  addWork(program, selected);
  addChecks(program, selected);
  addUpkeep(program, selected);
  return program;
}

function exitLines(): string[] {
  return Object.values(EXIT_CODES).map(({ code, means }) => `  ${String(code).padStart(2)}  ${means}`);
}

const examples = (...lines: string[]): string =>
  `\nExamples:\n${lines.map((line) => `  $ nessie-executor ${line}`).join('\n')}`;
const json = (command: Command): Command => command.option('--json', 'print facts as JSON', false);

function addPair(program: Command, selected: () => Places): void {
  program
    .command('pair')
    .description('pair this machine with a control plane, in a code flow with two sides or as an operator')
    .option('--origin <url>', 'address of the control plane, https://name')
    .option('--root <folder>', 'the one folder that agents may read and draft changes for', collect)
    .option('--ca <file>', 'PEM of the only authorities to trust for the origin')
    .option('--machine-name <name>', 'name that the page shows; default: the host name')
    .option('--request <id>', 'operators: request that the page showed')
    .option('--challenge <text>', 'operators: challenge that the page showed')
    .option('--whole-home', 'permit a root that holds your whole home', false)
    .option('--replace', 'pair anew in place of the pairing that this machine has; every draft must be gone', false)
    .option('--cancel', 'cancel a pairing that is not finished', false)
    .option('--no-qr', 'print no QR code')
    .addHelpText(
      'after',
      examples(
        'pair --origin https://control.example --root ~/project',
        'pair --origin https://control.example --root /srv/app --ca ca.pem',
      ),
    )
    .action(async ({ cancel, ...wish }: PairWish & { cancel: boolean }) => {
      const { cancelPairing, pair } = await import('./pair.ts');
      return cancel ? cancelPairing(ownTerminal(), selected()) : pair(ownTerminal(), selected(), wish);
    });
}

function addRunning(program: Command, selected: () => Places, all: () => Places[]): void {
  program
    .command('daemon')
    .description('run the executor in the foreground; its log goes to standard error')
    .addHelpText('after', examples('daemon', '--name second daemon'))
    .action(async () => {
      const [{ superviseInForeground }, { requireSetUp }] = await Promise.all([
        import('./supervised.ts'),
        import('./set-up.ts'),
      ]);
      requireSetUp(selected());
      process.exitCode = await superviseInForeground(selected());
    });
  json(program.command('status').argument('[executor]', 'name or id of one'))
    .description('show every executor of this user; uses no network')
    .addHelpText('after', examples('status', 'status --json'))
    .action(async (wanted: string | undefined, options: { json: boolean }) =>
      (await import('./status.ts')).status(ownTerminal(), all(), wanted, options.json),
    );
  program
    .command('server')
    .description('run the control plane; what follows goes to it')
    .argument('[arguments...]')
    .passThroughOptions()
    .allowUnknownOption()
    .helpOption(false)
    .action(async (rest: string[]) => {
      process.exitCode = await (await import('./server.ts')).runServer(rest);
    });
}

function addWork(program: Command, selected: () => Places): void {
  const drafts = json(program.command('drafts')).description('list what agents drafted on this machine');
  drafts.addHelpText('after', examples('drafts', 'drafts discard run_0123456789abcdef0123456789abcdef'));
  drafts.action(async (options: { json: boolean }) =>
    (await import('./drafts.ts')).listDrafts(ownTerminal(), selected(), options.json),
  );
  drafts
    .command('discard')
    .argument('<run>')
    .description('remove a draft for good')
    .option('--yes', 'do not ask', false)
    .action(async (run: string, options: { yes: boolean }) =>
      (await import('./drafts.ts')).discardDraft(ownTerminal(), selected(), run, options.yes),
    );
  json(program.command('review').argument('<run>'))
    .description(
      'show what a draft changes, line by line; with --approve confirm it on this machine, for one promotion',
    )
    .option('--approve', 'ask for a confirmation after everything was shown; needs a person at a terminal', false)
    .addOption(
      new Option('--withdraw', 'take back what was confirmed, before it was used').conflicts(['approve', 'json']),
    )
    .option('--no-pager', 'do not stop after each screen')
    .addHelpText(
      'after',
      examples('review run_0123456789abcdef0123456789abcdef', 'review run_0123456789abcdef0123456789abcdef --approve'),
    )
    .action(async (run: string, options: ReviewOptions) => {
      const { review, withdraw } = await import('./review.ts');
      const { approve, withdraw: isWithdrawn = false, json: isJson, pager: isPaged } = options;
      if (isWithdrawn) return withdraw(ownTerminal(), selected(), run);
      return review(ownTerminal(), selected(), run, { approve, isJson, isPaged });
    });
  addHistory(program, selected);
  addPolicy(program, selected);
}

function addHistory(program: Command, selected: () => Places): void {
  json(program.command('history'))
    .description('list the promotions that are kept on this machine, and whether each can be undone')
    .addHelpText('after', examples('history', 'history --json'))
    .action(async (options: { json: boolean }) =>
      (await import('./history.ts')).listHistory(ownTerminal(), selected(), options.json),
    );
  json(program.command('undo').argument('<id>', 'a promotion that `history` lists'))
    .description('take a promotion back byte for byte, all or nothing, while its files are as it left them')
    .option('--yes', 'do not ask', false)
    .addHelpText(
      'after',
      examples('undo prm_0123456789abcdef0123456789abcdef', 'undo prm_0123456789abcdef0123456789abcdef --yes --json'),
    )
    .action(async (id: string, { yes: isConfirmed, json: isJson }: { yes: boolean; json: boolean }) =>
      (await import('./history.ts')).undo(ownTerminal(), selected(), id, { isConfirmed, isJson }),
    );
}

function addPolicy(program: Command, selected: () => Places): void {
  const policy = program.command('policy').description('show and change what this machine is willing to do');
  policy.addHelpText(
    'after',
    examples('policy show', 'policy deny file.delete file.chmod', 'policy promotion machine', 'policy root ~/other'),
  );
  json(policy.command('show').description('print every operation with its verdict, and the other rules')).action(
    async (options: { json: boolean }) =>
      (await import('./policy.ts')).showPolicy(ownTerminal(), selected(), options.json),
  );
  json(policy.command('check').description('say whether policy.json can be used')).action(
    async (options: { json: boolean }) =>
      (await import('./policy.ts')).checkPolicy(ownTerminal(), selected(), options.json),
  );
  for (const verdict of ['allow', 'deny'] as const) {
    policy
      .command(verdict)
      .argument('<operation...>')
      .description(
        verdict === 'allow' ? 'allow operations; more rights wait for the control plane' : 'deny operations, at once',
      )
      .action(async (keys: string[]) =>
        (await import('./policy.ts')).changeOperations(ownTerminal(), selected(), verdict, keys),
      );
  }
  policy
    .command('promotion')
    .addArgument(new Argument('<who>', 'who confirms a promotion').choices(['page', 'machine']))
    .description('the person on the page alone, or a person at this machine as well')
    .action(async (who: 'page' | 'machine') =>
      (await import('./policy.ts')).changePromotion(ownTerminal(), selected(), who),
    );
  policy
    .command('root')
    .argument('<folder>')
    .description('choose another root; every draft must be gone and the daemon stopped')
    .option('--whole-home', 'permit a root that holds your whole home', false)
    .action(async (folder: string, options: { wholeHome: boolean }) =>
      (await import('./policy.ts')).changeRoot(ownTerminal(), selected(), folder, options.wholeHome),
    );
}

function addChecks(program: Command, selected: () => Places): void {
  json(program.command('audit'))
    .description('show from the kernel what each process can do, and try what it must not')
    .addHelpText('after', examples('audit', 'audit --json'))
    .action(async (options: { json: boolean }) =>
      (await import('./audit.ts')).audit(ownTerminal(), selected(), options.json),
    );
  json(program.command('doctor'))
    .description('check every precondition on this machine and print each remedy')
    .addHelpText('after', examples('doctor'))
    .action(async (options: { json: boolean }) =>
      (await import('./doctor.ts')).doctor(ownTerminal(), selected(), options.json),
    );
  json(program.command('receipts').description('work with exported receipts').command('verify').argument('<file>'))
    .description('verify an exported chain of receipts without a network')
    .requiredOption('--machine-key <hex>', 'public key of the machine, 64 hexadecimal digits')
    .requiredOption('--control-key <hex>', 'public key of the control plane, 64 hexadecimal digits')
    .addHelpText('after', examples('receipts verify receipts.json --machine-key HEX --control-key HEX'))
    .action(async (file: string, options: { machineKey: string; controlKey: string; json: boolean }) =>
      (await import('./receipts.ts')).verifyReceipts(
        ownTerminal(),
        file,
        { machine: options.machineKey, control: options.controlKey },
        options.json,
      ),
    );
  addTrace(program, selected);
  addSimulate(program);
}

function addTrace(program: Command, selected: () => Places): void {
  const trace = program.command('trace').description('record, show, replay and compare what the machines did');
  trace.addHelpText(
    'after',
    examples(
      'trace record day.jsonl',
      'trace replay day.jsonl',
      'trace view day.jsonl',
      'trace diff before.jsonl after.jsonl',
    ),
  );
  trace
    .command('record')
    .argument('[file]', 'a new file; default: standard output')
    .description('write the trace of the running daemon')
    .option('--follow', 'go on until interrupted', false)
    .action(async (file: string | undefined, options: { follow: boolean }) =>
      (await import('./trace.ts')).recordTrace(ownTerminal(), selected(), file, options.follow),
    );
  json(trace.command('show').argument('<file>').description('print a trace, one line an event')).action(
    async (file: string, options: { json: boolean }) =>
      (await import('./trace.ts')).showTrace(ownTerminal(), file, options.json),
  );
  json(
    trace.command('replay').argument('<file>').description('run a trace through the machines of this program'),
  ).action(async (file: string, options: { json: boolean }) =>
    (await import('./trace.ts')).replayTrace(ownTerminal(), file, options.json),
  );
  json(
    trace.command('diff').argument('<first>').argument('<second>').description('explain how two traces differ'),
  ).action(async (first: string, second: string, options: { json: boolean }) =>
    (await import('./trace.ts')).diffTraces(ownTerminal(), first, second, options.json),
  );
  addTraceTools(trace);
}

function addTraceTools(trace: Command): void {
  json(trace.command('walk').argument('<machine>'))
    .description('step a machine by hand: what holds, what could come, one event at a time; save it as a trace')
    .option('--events <file>', 'take these first, one JSON object a line')
    .option('--save <file>', 'write the walk to a new file at its end')
    .addHelpText('after', examples('trace walk command', 'trace walk daemon --events events.jsonl --json'))
    .action(
      async (machine: string, { events, save, json: isJson }: { events?: string; save?: string; json: boolean }) =>
        (await import('./step.ts')).stepCommand(ownTerminal(), machine, { events, save, isJson }),
    );
  json(trace.command('export').argument('<file>'))
    .description('write a trace for other tools: Mermaid text, or spans as OpenTelemetry’s JSON')
    .addOption(new Option('--to <form>', 'what to write').choices(['mermaid', 'otel']).makeOptionMandatory())
    .option('--output <file>', 'a new file; default: standard output')
    .addHelpText(
      'after',
      examples('trace export day.jsonl --to mermaid', 'trace export day.jsonl --to otel --output day.json'),
    )
    .action(async (file: string, { to, output, json: isJson }: { to: Form; output?: string; json: boolean }) =>
      (await import('./trace-export.ts')).exportTrace(ownTerminal(), file, { to, output, isJson }),
    );
  trace
    .command('view')
    .argument('<file>')
    .description(
      'write a trace as one page that a browser shows without a network: path, timeline, every line in words',
    )
    .option('--output <file>', 'a new file, or - for standard output', 'trace.html')
    .addHelpText('after', examples('trace view day.jsonl', 'trace view day.jsonl --output day.html'))
    .action(async (file: string, { output }: { output: string }) =>
      (await import('./trace-view.ts')).viewTrace(ownTerminal(), file, output),
    );
}

function addSimulate(program: Command): void {
  json(program.command('simulate'))
    .description(
      'run a world of machines by the rules of this program, with faults, and see whether every invariant holds',
    )
    .option('--seed <text>', 'what decides every chance; the same seed tells the same story', '1')
    .option('--executors <number>', 'machines', '5')
    .option(
      '--control-planes <number>',
      'processes of the control plane on one store; more than one are simulated only',
      '1',
    )
    .option('--hours <number>', 'time that passes in the world', '24')
    .option('--faults <kinds>', 'all, none, or kinds with commas between them', 'all')
    .option('--pace <name>', 'ordinary, or dense: what a year brings within hours', 'ordinary')
    .option('--trace <file>', 'write the trace to a new file')
    .option('--scenario <file>', 'tell the story of this file instead')
    .option('--step <machine>', 'walk one machine by hand instead')
    .addHelpText(
      'after',
      examples(
        'simulate --hours 24 --executors 50',
        'simulate --seed 7 --pace dense --faults cut,partition,daemon --trace story.jsonl',
        'simulate --scenario docs/scenarios/revoke-in-mid-command.yaml',
        'simulate --step command',
      ),
    )
    .action(async (options: SimulateWish & { readonly scenario?: string; readonly step?: string }) => {
      const { scenario, step, trace: save, json: isJson } = options;
      if (step !== undefined)
        return (await import('./step.ts')).stepCommand(ownTerminal(), step, { events: undefined, save, isJson });
      if (scenario !== undefined) (await import('./scenario.ts')).runScenario(ownTerminal(), scenario, options);
      else (await import('./simulate.ts')).runSimulation(ownTerminal(), options);
    });
}

function addUpkeep(program: Command, selected: () => Places): void {
  json(program.command('repair'))
    .description('let a daemon in its error state try again, after you looked at its fault')
    .addOption(
      new Option('--journal <choice>', 'what to do with a promotion that could not be settled')
        .choices(['leave', 'restore', 'set-aside'])
        .default('leave'),
    )
    .addHelpText('after', examples('repair', 'repair --journal restore'))
    .action(async (options: { journal: 'leave' | 'restore' | 'set-aside'; json: boolean }) =>
      (await import('./mend.ts')).repair(ownTerminal(), selected(), options.journal, options.json),
    );
  json(program.command('rotate-key'))
    .description('put a new machine key in place of the old one; goes on where it was interrupted')
    .action(async (options: { json: boolean }) =>
      (await import('./mend.ts')).rotateKey(ownTerminal(), selected(), options.json),
    );
  program
    .command('forget')
    .description('erase key, drafts and policy of an executor on this machine')
    .option('--yes', 'do not ask', false)
    .addHelpText('after', examples('forget', '--name second forget'))
    .action(async (options: { yes: boolean }) =>
      (await import('./mend.ts')).forget(ownTerminal(), selected(), options.yes),
    );
}

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
