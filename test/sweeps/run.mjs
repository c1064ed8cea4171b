/**
 * `npm run test:sweeps`: breaks the service on purpose, one place at a time, and expects a red test for each.
 *
 * Settings: each setting of the tree keeps its default, whatever a test sets (`default-setting.hook.mjs`). A setting that no
 * test notices has to stand in `settings.exceptions.yaml` with a reason, and an exception that a test notices is stale.
 * Options: `--only <text>` for keys that contain it, `--from <n>/<m>` for one of m equal parts, `--verbose`.
 */
import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parse } from 'yaml';
import { ensureInstalled, pinnedNode, root } from '../../bin/setup.mjs';

await ensureInstalled();
const option = (name) => {
  const index = process.argv.indexOf(name);
  return index === -1 ? null : (process.argv[index + 1] ?? '');
};
const only = option('--only') ?? '';
const [part = 1, parts = 1] = (option('--from') ?? '1/1').split('/').map(Number);
const isVerbose = process.argv.includes('--verbose');
/** Tests that may notice one setting; the likely ones first. */
const maxCandidates = 12;
const fileTimeoutMs = 180_000;

const { loadConfig } = await import('../../src/core/config/index.ts');
const keys = [...loadConfig({ env: {}, cwd: '/nowhere' }).sources.keys()]
  .filter((key) => key.includes(only))
  .filter((_key, index) => index % parts === part - 1);
const exceptions = parse(readFileSync(join(root, 'test/sweeps/settings.exceptions.yaml'), 'utf8')) ?? {};

const files = globSync('test/**/*.test.{ts,tsx}', { cwd: root })
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8'), bytes: statSync(join(root, file)).size }))
  .filter(({ file }) => !file.startsWith('test/core/config/') && !file.startsWith('test/docs/'));
/** What the files of a folder share, such as a world of its setups. */
const shared = globSync('test/**/*.ts', { cwd: root, exclude: (name) => name.endsWith('.test.ts') }).map((file) => ({
  folder: file.slice(0, file.lastIndexOf('/') + 1),
  text: readFileSync(join(root, file), 'utf8'),
}));

const word = (name) => new RegExp(`\\b${name}\\b`);

/** Test files that may set a setting, by the names of its key in their text and in that of their folder. */
const candidatesOf = (key) => {
  const names = key.split(':');
  const leaf = word(names.at(-1));
  const section = word(names.at(-2) ?? '');
  const scoreOf = ({ file, text, bytes }) => {
    const folder = shared.filter((one) => file.startsWith(one.folder)).map((one) => one.text);
    const own = (leaf.test(text) ? 4 : 0) + (section.test(text) ? 2 : 0);
    const below = folder.some((one) => leaf.test(one)) ? 1 : 0;
    return own + below === 0 || (own < 4 && below === 0) ? 0 : own + below + 1 / (1 + bytes / 10_000);
  };
  return files
    .map((one) => ({ file: one.file, score: scoreOf(one) }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, maxCandidates)
    .map(({ file }) => file);
};

const scratch = mkdtempSync(join(tmpdir(), 'acp-sweep-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/** Whether a file has a failing test with the setting at its default, and whether any of its tests had set it. */
const runFile = (key, file) =>
  new Promise((resolve) => {
    const seen = join(scratch, `${Math.random().toString(36).slice(2)}`);
    const child = spawn(
      pinnedNode(),
      [
        '--import',
        './test/sweeps/default-setting.hook.mjs',
        '--test',
        '--test-reporter=tap',
        '--test-timeout=60000',
        file,
      ],
      {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
        env: {
          ...process.env,
          TMPDIR: scratch,
          ACP_SWEEP_SETTING: key,
          ACP_SWEEP_SEEN: seen,
          NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'acp-tests'),
        },
      },
    );
    let isRed = false;
    const end = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // All of the group have ended.
      }
    };
    const timer = setTimeout(end, fileTimeoutMs);
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      text = text.slice(-500) + piece;
      if (!/^\s*not ok /m.test(text)) return;
      isRed = true;
      end();
    });
    child.once('close', () => {
      clearTimeout(timer);
      let wasSet = false;
      try {
        wasSet = statSync(seen).size > 0;
      } catch {
        // No configuration of this file set it.
      }
      resolve({ isRed: isRed && wasSet, wasSet });
    });
  });

const verdictOf = async (key) => {
  let setters = 0;
  for (const file of candidatesOf(key)) {
    const { isRed, wasSet } = await runFile(key, file);
    if (isRed) return { key, redIn: file, setters };
    if (wasSet) setters += 1;
  }
  return { key, redIn: null, setters };
};

const queue = [...keys];
const green = [];
const stale = [];
let done = 0;
const work = async () => {
  for (let key = queue.shift(); key !== undefined; key = queue.shift()) {
    const { redIn, setters } = await verdictOf(key);
    done += 1;
    const reason = exceptions[key];
    if (redIn === null && reason === undefined) green.push(key);
    if (redIn !== null && reason !== undefined) stale.push(key);
    if (isVerbose || redIn === null)
      console.log(
        `${done}/${keys.length}  ${key}  ${redIn ?? `no test notices (${setters} files set it)${reason === undefined ? '' : `: ${reason}`}`}`,
      );
  }
};
await Promise.all(Array.from({ length: availableParallelism() }, work));

for (const key of stale) console.log(`stale exception: ${key} has a test that notices it`);
console.log(`${keys.length} settings: ${keys.length - green.length} noticed or excepted, ${green.length} not noticed`);
for (const key of green) console.log(`  ${key}`);
process.exitCode = green.length + stale.length > 0 ? 1 : 0;
