import {
  COMMON_ENVIRONMENT,
  COMMON_FLAGS,
  COMMON_PATHS,
  UID_BASE,
  type Confined,
  type EnvironmentEntry,
  type PathRule,
  type PathSubject,
  type Privileges,
  type Unconfined,
} from '../runtime/privileges.ts';
import { ruleLines } from '../runtime/platform/seccomp.ts';
import { seccompRules } from '../runtime/platform/linux-calls.ts';
import { execDescriptorOf } from '../runtime/platform/linux.ts';
import { TABLE } from '../table.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|');

const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'None.';
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

function subjectText(subject: PathSubject): string {
  if (subject.of === 'path') return `\`${subject.path}\`${subject.mayBeAbsent ? ', where it exists' : ''}`;
  if (subject.of === 'descriptor') return `below descriptor ${subject.number}`;
  if (subject.of === 'installation') return `${subject.file} of the installation`;
  if (subject.of === 'own process') return 'its own folder in `/proc`';
  return {
    node: "node's program file",
    loader: "the program's loader",
    libraries: 'the folders of its shared libraries',
  }[subject.part];
}

const pathRows = (rules: readonly PathRule[]): string[][] =>
  rules.map(({ subject, rights, reason }) => [subjectText(subject), rights, reason]);

const environmentRows = (entries: readonly EnvironmentEntry[]): string[][] =>
  entries.map(({ name, value, reason }) => [
    `\`${name}\``,
    typeof value === 'string' ? `\`${value}\`` : `from: ${value.from}`,
    reason,
  ]);

function userText({ user }: Confined): string {
  const who = user.as === 'own uid' ? `uid ${UID_BASE + user.offset}` : user.as;
  return `Under root: ${who}, because ${user.reason}. Otherwise the owner's own uid.`;
}

function peersTable({ peers }: Privileges): string {
  return table(
    ['peer', 'who asks', 'what for'],
    peers.map(({ row, asks, reason }) => [row, asks, reason]),
  );
}

function confinedSection(row: Confined): string[] {
  const rules = ruleLines(seccompRules(row.systemCalls, execDescriptorOf(row)));
  return [
    userText(row),
    '### Descriptors',
    table(
      ['number', 'kind', 'source', 'reason'],
      row.descriptors.map(({ number, kind, source, reason }) => [String(number), kind, source, reason]),
    ),
    '### Paths, beside the common ones',
    table(['path', 'rights', 'reason'], pathRows(row.paths)),
    '### Network',
    `${row.network.reach}: ${row.network.reason}.`,
    '### Environment, beside the common one',
    table(['name', 'value', 'reason'], environmentRows(row.environment)),
    '### Limits',
    table(
      ['limit', 'value', 'reason'],
      row.limits.map(({ resource, value, reason }) => [resource, String(value), reason]),
    ),
    '### System calls',
    `Sockets: ${row.systemCalls.sockets}. Accepting: ${row.systemCalls.accept ? 'yes' : 'no'}. Metadata of files: ${row.systemCalls.metadata}. ` +
      `${row.systemCalls.reason}. Native calls: ${row.koffi ?? 'none'}.`,
    `<details><summary>All ${rules.length} rules of its filter</summary>\n\n${rules.map((line) => `- ${line}`).join('\n')}\n\n</details>`,
    '### Flags of node, beside the common ones',
    row.nodeFlags
      .filter((flag) => !COMMON_FLAGS.includes(flag))
      .map((flag) => `\`${flag}\``)
      .join(', '),
  ];
}

function unconfinedSection(row: Unconfined): string[] {
  return [
    `**Not confined**: ${row.reason}.`,
    ...(row.capabilities.length === 0
      ? []
      : [
          '### Capabilities that it keeps under root',
          table(
            ['capability', 'reason'],
            row.capabilities.map(({ name, reason }) => [name, reason]),
          ),
        ]),
  ];
}

function section(row: Privileges): string[] {
  return [
    `## ${row.row}`,
    `\`${row.entry}\`, ${row.lifetime}: ${row.purpose}.`,
    ...(row.confined ? confinedSection(row) : unconfinedSection(row)),
    '### Peers',
    peersTable(row),
  ];
}

/** The text of helpers/PROCESSES.md, from the table alone. */
export function render(): string {
  const rows = Object.values(TABLE);
  const overview = rows.map((row) => [
    `[${row.row}](#${row.row})`,
    row.purpose,
    row.confined ? row.network.reach : 'not confined',
    row.lifetime,
  ]);
  const parts = [
    '# Processes',
    'Every program that the product runs on a machine, with all that it may do and why. Generated from `helpers/table.ts`; what is not listed is not granted.',
    table(['row', 'what it does', 'network', 'lives'], overview),
    '## What every confined row has',
    'No capability, `no_new_privs`, Landlock, one seccomp filter, a core limit of 0, no controlling terminal. Its end of a channel is all that it can reach of another process. ' +
      'What is left to a row that was taken over: to run the same program again, or bytes of its own through that program or its loader, under the same confinement; and to ask whether a path exists and what its size and times are, ' +
      'which Landlock does not cover.',
    '### Common paths',
    table(['path', 'rights', 'reason'], pathRows(COMMON_PATHS)),
    '### Common environment',
    table(['name', 'value', 'reason'], environmentRows(COMMON_ENVIRONMENT)),
    '### Common flags of node',
    COMMON_FLAGS.map((flag) => `\`${flag}\``).join(', '),
    ...rows.flatMap(section),
  ];
  return `${parts.join('\n\n')}\n`;
}
