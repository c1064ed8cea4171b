/**
 * Which settings each test file sets: all files run once with nothing broken, and the hook writes what their configurations have
 * at another value than its default. The recording is stored by the content of the files, so that only those that changed run again.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ensureExecutable, root } from '../../bin/setup.mjs';
import { runFile } from './run-file.mjs';

const hook = './test/sweeps/recorded-settings.hook.mjs';
const stored = join(root, 'node_modules/.cache/acp-sweeps/setting-recording.json');
const imported = /^(?:import|export)\b[^;]*?\bfrom '(\.[^']+)'/gm;
/** They compare what is written about settings and not what settings do, or start what the hook does not reach. */
const isLeftOut = (file) => /^test\/(?:core\/config|docs|architecture|mcp-conformance|conformance)\//.test(file);
/** They start programs: what they tell is known last. */
const isSlow = (file) => /^test\/(?:bin|cli|e2e|fleet|tui)\//.test(file);
/** What they set is set in each test; a change in them is seldom one of a setting. */
const everywhere = /\/test\/support\/(?:app|store|program)\.ts$/;
/** The longest file of the fleet takes two minutes on a busy machine. */
const timeoutMs = 240_000;

/** The content of a test file and of what it imports from the tests. */
const createHashes = () => {
  const texts = new Map();
  const textOf = (path) => {
    if (!texts.has(path)) texts.set(path, existsSync(path) ? readFileSync(path, 'utf8') : '');
    return texts.get(path);
  };
  const collect = (path, found) => {
    for (const [, other] of textOf(path).matchAll(imported)) {
      const next = resolve(dirname(path), other);
      if (found.has(next) || !next.startsWith(join(root, 'test')) || everywhere.test(next)) continue;
      found.add(next);
      collect(next, found);
    }
    return found;
  };
  return (file) => {
    const path = join(root, file);
    const hash = createHash('sha256');
    for (const one of [path, ...[...collect(path, new Set())].sort()]) hash.update(textOf(one)).update('\0');
    return hash.digest('hex').slice(0, 16);
  };
};

const readStored = () => (existsSync(stored) ? JSON.parse(readFileSync(stored, 'utf8')) : {});

const record = async (file, { scratch, variables }) => {
  const once = () => runFile({ file, hook, scratch, variables, toEnd: true, timeoutMs });
  let outcome = await once();
  // A busy machine fails tests that another attempt does not.
  if (outcome.isRed) outcome = await once();
  const settings = {};
  for (const line of outcome.seenLines) {
    const [key, text] = JSON.parse(line);
    settings[key] ??= [];
    if (!settings[key].includes(text)) settings[key].push(text);
  }
  return { duration: outcome.duration, failing: outcome.failing, settings };
};

/** `{file: {hash, duration, failing, settings: {key: [values as text]}}}` of all test files that a sweep may run. */
export const recordSettings = async ({ scratch, variables, workers }) => {
  const hashOf = createHashes();
  const before = readStored();
  const files = globSync('test/**/*.test.{ts,tsx}', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !isLeftOut(file))
    .sort((left, right) => Number(isSlow(left)) - Number(isSlow(right)) || left.localeCompare(right));
  const recording = {};
  const queue = [];
  for (const file of files) {
    const hash = hashOf(file);
    if (before[file]?.hash === hash && before[file].failing === null) recording[file] = before[file];
    else queue.push({ file, hash });
  }
  const store = () => writeFileSync(stored, JSON.stringify(recording));
  const total = queue.length;
  if (total > 0) {
    console.log(`settings: recording what ${total} test files set`);
    await ensureExecutable();
  }
  mkdirSync(dirname(stored), { recursive: true });
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      recording[next.file] = { hash: next.hash, ...(await record(next.file, { scratch, variables })) };
      store();
      if (queue.length % 50 === 0) console.log(`settings: ${queue.length} test files left to record`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  store();
  for (const [file, { failing }] of Object.entries(recording))
    if (failing !== null) console.log(`settings: ${file} is not tried, since it fails with nothing broken: ${failing}`);
  return recording;
};

/** How rare a value has to be among the files that set it, from the rarest on. */
const rarities = [2, 8, 32];

/** The files that set one of the keys: those whose value is rare first, since they are about it, and of these the quickest first. */
export const createCandidates = (recording) => {
  const files = Object.entries(recording).filter(([, { failing }]) => failing === null);
  const counts = new Map();
  for (const [, { settings }] of files)
    for (const [key, texts] of Object.entries(settings))
      for (const text of texts) counts.set(`${key}=${text}`, (counts.get(`${key}=${text}`) ?? 0) + 1);
  const rarityOf = (settings, keys) => {
    const count = Math.min(
      ...keys.flatMap((key) => (settings[key] ?? []).map((text) => counts.get(`${key}=${text}`) ?? 1)),
    );
    return rarities.filter((rarity) => count > rarity).length;
  };
  return (keys) =>
    files
      .filter(([, { settings }]) => keys.some((key) => settings[key] !== undefined))
      .map(([file, { settings, duration }]) => ({ file, duration, rarity: rarityOf(settings, keys) }))
      .sort((left, right) => left.rarity - right.rarity || left.duration - right.duration)
      .map(({ file }) => file);
};
