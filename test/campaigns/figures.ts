import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import type { Campaign, Standing } from './campaign.ts';

const HEAD = `# Campaigns

Long runs beside the suite: \`npm run campaign -- NAME --minutes M --seed S\`. A round depends on the seed and its number alone;
the crash matrix has a list of cases and no seed. These are the figures of the last run of each; the command writes them.

`;

/** What the figures need to know of a campaign. */
type Told = Pick<Campaign, 'name' | 'figures'>;

/** Puts the figures of this run in place of the ones before, with seed and commit. */
export function writeFigures(top: string, campaign: Told, standing: Standing): void {
  const file = path.join(top, 'docs', 'campaigns.md');
  const sections = new Map(fs.existsSync(file) ? sectionsOf(fs.readFileSync(file, 'utf8')) : []);
  sections.set(campaign.name, sectionFor(top, campaign, standing));
  const text = [...sections].toSorted(([one], [other]) => one.localeCompare(other)).map(([, section]) => section);
  fs.writeFileSync(file, `${HEAD}${text.join('\n')}`);
}

function sectionsOf(text: string): [string, string][] {
  return text
    .split(/^(?=## )/m)
    .slice(1)
    .map((section) => [/^## (\S+)/.exec(section)?.[1] ?? '', `${section.trimEnd()}\n`]);
}

function sectionFor(top: string, campaign: Told, standing: Standing): string {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: top, encoding: 'utf8' }).trim();
  const counts = Object.entries(standing.counts).toSorted(([one], [other]) => one.localeCompare(other));
  const figures = campaign.figures?.(new Map(counts));
  const seeded = standing.seed === '' ? 'A list of cases, no seed' : `Seed \`${standing.seed}\``;
  const lines = [
    `## ${campaign.name}`,
    '',
    `${seeded}, commit \`${commit}\`: ${standing.done} rounds in ${Math.round(standing.seconds)} s, ${standing.failures.length} failures.`,
    '',
    ...(figures === undefined ? countTable(counts) : [figures, '']),
    ...standing.failures.flatMap(({ round, message }) => [`- round ${round}: ${message.replaceAll('\n', ' ')}`]),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
}

/** Counts as a table. */
export function countTable(counts: readonly (readonly [string, number])[]): string[] {
  return ['| round | how often |', '|---|---|', ...counts.map(([what, count]) => `| ${what} | ${count} |`), ''];
}
