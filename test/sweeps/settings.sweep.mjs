/**
 * Settings: each setting of the tree keeps its default, whatever a test sets, and a test has to turn red. The recording says which test
 * files set it. What no test notices stands in `settings.exceptions.yaml` with a reason: `no test yet: …` is a gap that the sweep
 * counts and prints.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../../bin/setup.mjs';
import { needStores } from '../postgres.mjs';
import { runFile } from './run-file.mjs';
import { settingKeys } from './setting-keys.mjs';
import { createCandidates, recordSettings } from './setting-recording.mjs';

const hook = './test/sweeps/default-setting.hook.mjs';
const verdictsFile = join(root, 'node_modules/.cache/acp-sweeps/setting-verdicts.json');
const gap = /^no test yet: \S/;
/** What is no setting of a store is tried on one of them first. */
const oneStore = ['--test-skip-pattern=/memory|PostgreSQL/'];
const isOfStores = (name) => /:Persistence\b|Postgres/.test(name);
/** Of a setting that most files set, those that set it as hardly another one does are tried, and no more than these. */
const maxCandidates = 24;

/** The models of all providers are declared once: their settings are broken everywhere at the same time. */
const groupOf = (key) => key.replace(/^Service:Providers:(?:Compatible:\*|\w+):Models:/, 'Service:Providers:*:Models:');

/** How each test file is run for a setting, in this order. */
const attemptsFor = (name, files) => {
  if (isOfStores(name)) return files.map((file) => ({ file, options: [] }));
  const onAll = files.filter((file) => needStores(root, [file]));
  return [...files.map((file) => ({ file, options: oneStore })), ...onAll.map((file) => ({ file, options: [] }))];
};

const readVerdicts = () => (existsSync(verdictsFile) ? JSON.parse(readFileSync(verdictsFile, 'utf8')) : {});

export const settingsSweep = async (asked) => {
  const { only, part, parts, workers, isVerbose, isResumed, scratch, variables } = asked;
  const { configSchema } = await import('../../src/core/config/schema.ts');
  const { keys, planned } = settingKeys(configSchema);
  const groups = [...Map.groupBy(keys, groupOf)]
    .filter(([name]) => only.test(name))
    .filter((_group, index) => index % parts === part - 1);
  const exceptions = parse(readFileSync(join(root, 'test/sweeps/settings.exceptions.yaml'), 'utf8')) ?? {};
  const recording = await recordSettings(asked);
  const candidatesOf = createCandidates(recording);
  const verdicts = readVerdicts();

  const controls = new Map();
  /** A file that fails with nothing broken proves nothing. */
  const isSound = ({ file, options }) => {
    const id = [file, ...options].join(' ');
    if (!controls.has(id)) {
      const control = { file, hook, scratch, options, variables: { ...variables, ACP_SWEEP_SETTING: '' } };
      controls.set(
        id,
        runFile(control).then(({ isRed }) => !isRed),
      );
    }
    return controls.get(id);
  };
  const verdictOf = async (name, members) => {
    const files = candidatesOf(members);
    const tried = files.slice(0, maxCandidates);
    const of = tried.map((file) => recording[file].hash).join();
    const before = verdicts[name];
    // Of a run that is continued: what was noticed, and what was not by the same tests.
    if (isResumed && before !== undefined && (before.redIn !== null || before.of === of)) return before;
    for (const { file, options } of attemptsFor(name, tried)) {
      const broken = { ...variables, ACP_SWEEP_SETTING: members.join('|') };
      const { isRed, wasSeen, failing } = await runFile({ file, hook, scratch, options, variables: broken });
      if (isRed && wasSeen && (await isSound({ file, options }))) return { redIn: `${file}: ${failing}` };
    }
    return { redIn: null, setters: files.length, tried: tried.length, of };
  };

  // What no test sets needs no run, and is told first.
  const queue = groups.toSorted(([, left], [, right]) => candidatesOf(left).length - candidatesOf(right).length);
  const result = { noticed: 0, excepted: 0, gaps: [], missing: [], stale: [] };
  let done = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [name, members] = next;
      verdicts[name] = await verdictOf(name, members);
      writeFileSync(verdictsFile, JSON.stringify(verdicts));
      const { redIn, setters, tried } = verdicts[name];
      const reason = exceptions[name];
      const unnoticed =
        setters === 0 ? 'no test sets it' : `no test notices; ${setters} files set it, ${tried} were tried`;
      done += 1;
      if (redIn !== null) result.noticed += 1;
      if (redIn !== null && reason !== undefined) result.stale.push(name);
      if (redIn === null && reason === undefined) result.missing.push(`${name} (${unnoticed})`);
      if (redIn === null && reason !== undefined) {
        if (gap.test(reason)) result.gaps.push(`${name}: ${reason}`);
        else result.excepted += 1;
      }
      if (isVerbose || redIn === null) console.log(`${done}/${groups.length}  ${name}  ${redIn ?? unnoticed}`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));

  const { noticed, excepted, gaps, missing, stale } = result;
  console.log(
    `settings: ${groups.length} swept, ${noticed} noticed, ${excepted} excepted with a reason, ${gaps.length} without a test yet, ` +
      `${missing.length} unexplained; ${planned.length} of planned features not swept`,
  );
  for (const line of gaps) console.log(`  ${line}`);
  for (const line of missing) console.log(`  not noticed: ${line}`);
  for (const name of stale) console.log(`  stale exception: a test notices ${name}`);
  return missing.length + stale.length === 0;
};
