/**
 * Settings: each setting of the tree keeps its default, whatever a test sets, and a test has to turn red. What no test notices
 * stands in `settings.exceptions.yaml` with a reason: `no test yet: …` is a gap that the sweep counts and prints.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../../bin/setup.mjs';
import { createCandidates } from './candidates.mjs';
import { runFile } from './run-file.mjs';
import { settingKeys } from './setting-keys.mjs';

const hook = './test/sweeps/default-setting.hook.mjs';
const maxCandidates = 8;
const gap = /^no test yet: \S/;
/** What is no setting of a store is the same on all of them. */
const optionsFor = (name) => (/:Persistence\b|Postgres/.test(name) ? [] : ['--test-skip-pattern=/memory|PostgreSQL/']);

/** The models of all providers are declared once: their settings are broken everywhere at the same time. */
const groupOf = (key) => key.replace(/^Service:Providers:(?:Compatible:\*|\w+):Models:/, 'Service:Providers:*:Models:');

export const settingsSweep = async ({ only, part, parts, workers, isVerbose, scratch, variables }) => {
  const { configSchema } = await import('../../src/core/config/schema.ts');
  const { keys, planned } = settingKeys(configSchema);
  const groups = [...Map.groupBy(keys, groupOf)]
    .filter(([name]) => only.test(name))
    .filter((_group, index) => index % parts === part - 1);
  const exceptions = parse(readFileSync(join(root, 'test/sweeps/settings.exceptions.yaml'), 'utf8')) ?? {};
  const candidatesOf = createCandidates(root, maxCandidates);

  const controls = new Map();
  /** A file that fails with nothing broken proves nothing. */
  const isSound = (file, options) => {
    if (!controls.has(file))
      controls.set(
        file,
        runFile({ file, hook, scratch, options, variables: { ...variables, ACP_SWEEP_SETTING: '' } }).then(
          ({ isRed }) => !isRed,
        ),
      );
    return controls.get(file);
  };
  const verdictOf = async (name, members) => {
    let setters = 0;
    const options = optionsFor(name);
    for (const file of candidatesOf(name)) {
      const broken = { ...variables, ACP_SWEEP_SETTING: members.join('|') };
      const { isRed, wasSeen, failing } = await runFile({ file, hook, scratch, options, variables: broken });
      if (wasSeen) setters += 1;
      if (isRed && wasSeen && (await isSound(file, options))) return { redIn: `${file}: ${failing}`, setters };
    }
    return { redIn: null, setters };
  };

  const queue = [...groups];
  const result = { noticed: 0, excepted: 0, gaps: [], missing: [], stale: [] };
  let done = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [name, members] = next;
      const { redIn, setters } = await verdictOf(name, members);
      const reason = exceptions[name];
      done += 1;
      if (redIn !== null) result.noticed += 1;
      if (redIn !== null && reason !== undefined) result.stale.push(name);
      if (redIn === null && reason === undefined) result.missing.push(`${name} (${setters} of the files tried set it)`);
      if (redIn === null && reason !== undefined) {
        if (gap.test(reason)) result.gaps.push(`${name}: ${reason}`);
        else result.excepted += 1;
      }
      if (isVerbose || redIn === null)
        console.log(`${done}/${groups.length}  ${name}  ${redIn ?? `no test notices; set by ${setters}`}`);
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
