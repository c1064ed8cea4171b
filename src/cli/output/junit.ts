import type { BundleReport, RunReport, StepReport } from '../../features/replays/index.ts';
import { unifiedDiff } from './unified-diff.ts';

// XML 1.0 has no way to write these, not even escaped.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are left out.
const notXml = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replace(notXml, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

interface Case {
  readonly name: string;
  readonly result: RunReport['result'];
  /** In one line. */
  readonly message: string;
  /** What changed, below the message; empty: the message is all. */
  readonly changes: readonly string[];
}

const messageOf = ({ differences, reason }: StepReport): string =>
  [differences.length === 0 ? '' : `${differences.join(', ')} differ`, reason ?? '']
    .filter((text) => text !== '')
    .join('. ');

/** The changes of a run are those of its first step that drifted. */
const casesOf = ({ steps, outcome, changes }: RunReport): Case[] => {
  const first = steps.find(({ result }) => result === 'drifted');
  const diff = changes.flatMap(({ part, recorded, replayed }) =>
    unifiedDiff(recorded, replayed, `recorded ${part}`, `replayed ${part}`),
  );
  const outcomeMessage = `recorded ${outcome.recorded}, replayed ${outcome.replayed}`;
  return [
    ...steps.map((step) => ({
      name: `step ${step.number}`,
      result: step.result,
      message: messageOf(step),
      changes: step === first ? diff : [],
    })),
    { name: 'outcome', result: outcome.result, message: outcomeMessage, changes: [] },
  ];
};

/** Drift is a failure; what could not be compared is an error, so that neither passes unseen. */
const caseXml = (className: string, { name, result, message, changes }: Case): string => {
  const head = `    <testcase classname="${escaped(className)}" name="${escaped(name)}"`;
  if (result === 'identical') return `${head}/>\n`;
  const tag = result === 'drifted' ? 'failure' : 'error';
  const body = escaped([message, ...changes].join('\n'));
  return `${head}>\n      <${tag} type="${result}" message="${escaped(message)}">${body}</${tag}>\n    </testcase>\n`;
};

const counts = (cases: readonly Case[]): string =>
  `tests="${cases.length}" failures="${cases.filter(({ result }) => result === 'drifted').length}" ` +
  `errors="${cases.filter(({ result }) => result === 'missing').length}"`;

/** A report as JUnit XML: one suite per run, one case per step and one for the outcome. */
export const junitXml = (report: BundleReport): string => {
  const suites = report.runs.map((run) => {
    const cases = casesOf(run);
    const name = `${run.agentName} ${run.runId}`;
    const body = cases.map((each) => caseXml(name, each)).join('');
    return `  <testsuite name="${escaped(name)}" ${counts(cases)} skipped="0">\n${body}  </testsuite>\n`;
  });
  const all = counts(report.runs.flatMap(casesOf));
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="acp replay" ${all}>\n${suites.join('')}</testsuites>\n`;
};
