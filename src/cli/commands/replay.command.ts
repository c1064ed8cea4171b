import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AcpError } from '../../contract/errors.ts';
import type { BundleReport, RunReport } from '../../features/replays/index.ts';
import type { Style } from '../../text/style.ts';
import { safeLine, safeText } from '../../text/text-width.ts';
import { type CommandHost, collect, splitPair } from '../command-host.ts';
import { readDefinitions } from '../definitions/definition-sources.ts';
import { bundleFileLines } from '../files/bundle-file.ts';
import { junitXml } from '../output/junit.ts';
import type { Terminal } from '../output/terminal.ts';
import { unifiedDiff } from '../output/unified-diff.ts';

/** Apart from the codes of errors: a gate tells a difference from a failure of the command. */
const exitCodes = { identical: 0, drifted: 10, missing: 11 } as const;

/** `agent=FILE`: the definition of that name in the file. */
const readChange = async (pair: string, terminal: Terminal, cwd: string) => {
  const [name, path] = splitPair(pair, '--with takes agent=FILE');
  const file = resolve(cwd, path);
  const { documents, problems } = await readDefinitions([file], terminal);
  const [problem] = problems;
  if (problem !== undefined)
    throw new AcpError('definition-invalid', `${problem.file}:${problem.line ?? 1}: ${problem.message}`);
  const document = documents.find(({ value }) => value['name'] === name);
  if (document === undefined) throw new AcpError('validation-failed', `${file} has no definition of agent "${name}".`);
  return [name, document.value] as const;
};

const replay = async (path: string, changed: readonly (readonly [string, unknown])[]): Promise<BundleReport> => {
  // The engine is loaded by this command alone.
  const [{ openBundle, replayBundle }, { readDefinition }, { CompileError }] = await Promise.all([
    import('../../features/replays/index.ts'),
    import('../../features/agents/index.ts'),
    import('../../engine/compiled-agent.ts'),
  ]);
  const changes = new Map(changed.map(([name, value]) => [name, readDefinition(value)]));
  try {
    return await replayBundle(await openBundle(() => bundleFileLines(path)), changes);
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    throw new AcpError('agent-not-compilable', error.message, { details: { errors: error.findings } });
  }
};

const styled = (result: RunReport['result'], style: Style): string =>
  result === 'identical' ? style.green(result) : result === 'drifted' ? style.red(result) : style.yellow(result);

const changeLines = (run: RunReport): string[] =>
  run.changes.flatMap(({ part, recorded, replayed }) => [
    '',
    ...unifiedDiff(safeText(recorded), safeText(replayed), `recorded ${part}`, `replayed ${part}`),
  ]);

// More than a screen or two says no more; --json has all of it.
const maxShown = 50;

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const divergenceLines = (report: BundleReport, style: Style): string[] => {
  const { divergences } = report;
  const lines = divergences.slice(0, maxShown).map(({ runId, agentName, step, result, detail }, index) => {
    const where = step === null ? 'outcome' : `step ${step}`;
    const lead = index === 0 ? 'First divergence: ' : '';
    return `${lead}${safeLine(agentName)} ${runId} ${where}: ${styled(result, style)}, ${safeLine(detail)}`;
  });
  const more = divergences.length - lines.length;
  return more > 0 ? [...lines, `… and ${counted(more, 'more divergence')}; --json shows all.`] : lines;
};

/** Of a large tree only what is not identical. */
const runLines = ({ runs }: BundleReport, style: Style): string[] => {
  const shown = runs.length <= maxShown ? runs : runs.filter(({ result }) => result !== 'identical').slice(0, maxShown);
  const lines = shown.map((run) => {
    const version = run.agentVersion === null ? '' : ` v${run.agentVersion}`;
    const name = `${'  '.repeat(run.depth)}${safeLine(run.agentName)}${version}`;
    return `${name}  ${styled(run.result, style)}  ${counted(run.steps.length, 'step')}  ${style.dim(run.runId)}`;
  });
  const left = runs.filter((run) => !shown.includes(run));
  const identical = left.filter(({ result }) => result === 'identical').length;
  if (identical > 0) lines.push(`… and ${counted(identical, 'identical run')}`);
  if (left.length > identical) lines.push(`… and ${counted(left.length - identical, 'other run')}`);
  return lines;
};

const describe = (report: BundleReport, style: Style): string => {
  const lines = divergenceLines(report, style);
  const first = report.runs.find(({ runId }) => runId === report.divergences[0]?.runId);
  if (first !== undefined) lines.push(...changeLines(first));
  if (lines.length > 0) lines.push('');
  const steps = report.runs.reduce((sum, run) => sum + run.steps.length, 0);
  const size = `${counted(report.runs.length, 'run')}, ${counted(steps, 'step')}`;
  lines.push(...runLines(report, style), `Result: ${styled(report.result, style)} (${size})`);
  return lines.map((line) => `${line}\n`).join('');
};

/** `acp replay`: a bundle again, in this process. */
export const registerReplay = (host: CommandHost): void => {
  host.program
    .command('replay')
    .description('replay a run bundle from its recording, without key, network or service')
    .argument('<bundle>', 'file written by `acp runs export`')
    .option('--with <agent=file>', 'replay with a changed definition of an agent (repeatable)', collect)
    .option('--junit <file>', 'also write the report as JUnit XML')
    .addHelpText(
      'after',
      '\nExit codes: 0 identical, 10 drifted, 11 something could not be compared, 2 no readable bundle.\n',
    )
    .action(
      host.act(async ({ terminal, print, cwd }, { args, options }) => {
        const path = resolve(cwd, String(args[0]));
        const pairs = (options['with'] ?? []) as readonly string[];
        const changed = await Promise.all(pairs.map((pair) => readChange(pair, terminal, cwd)));
        const report = await replay(path, changed);
        for (const warning of report.warnings) terminal.note(warning);
        if (typeof options['junit'] === 'string') await writeFile(resolve(cwd, options['junit']), junitXml(report));
        await print(report, ({ style }) => describe(report, style));
        return exitCodes[report.result];
      }),
    );
};
