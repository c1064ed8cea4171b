/** Runs one test file with a hook, and ends it at its first failing test where only that one matters. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { pinnedNode, root } from '../../bin/setup.mjs';

/** Longer than any file takes alone; a file that takes longer has not turned red. */
const fileTimeoutMs = 60_000;
const testTimeoutMs = 30_000;
let count = 0;
/** Files that run: the end of the sweep stops them. */
const ends = new Set();
process.on('exit', () => {
  for (const end of ends) end();
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

/**
 * `{isRed, wasSeen, seenLines, failing, duration}`; seen: the hook had something to break or to write. `failing` is the name of the test.
 * A file that was ended for its time is red where it had to run to its end.
 */
export const runFile = ({ file, hook, scratch, variables, options = [], toEnd = false, timeoutMs = fileTimeoutMs }) =>
  new Promise((resolve) => {
    count += 1;
    const started = performance.now();
    let failing = null;
    // What a file leaves behind that was ended goes with its folder.
    const folder = join(scratch, `run-${count}`);
    mkdirSync(folder);
    chmodSync(folder, 0o1777);
    const seen = join(folder, 'seen');
    const child = spawn(
      pinnedNode(),
      [
        '--import',
        hook,
        '--test',
        '--test-reporter=tap',
        `--test-timeout=${toEnd ? timeoutMs : testTimeoutMs}`,
        ...options,
        file,
      ],
      {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
        env: {
          ...process.env,
          TMPDIR: folder,
          ...variables,
          ACP_SWEEP_SEEN: seen,
          NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'acp-tests'),
        },
      },
    );
    const end = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // All of the group have ended.
      }
    };
    ends.add(end);
    const timer = setTimeout(() => {
      if (toEnd) failing ??= 'it took too long';
      end();
    }, timeoutMs);
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      text = text.slice(-500) + piece;
      const line = /^\s*not ok \d+ - (.*)$/m.exec(text);
      if (line === null || failing !== null) return;
      failing = line[1];
      if (!toEnd) end();
    });
    child.once('close', () => {
      clearTimeout(timer);
      ends.delete(end);
      const seenLines = existsSync(seen)
        ? readFileSync(seen, 'utf8')
            .split('\n')
            .filter((one) => one !== '')
        : [];
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
      const duration = Math.round(performance.now() - started);
      resolve({ isRed: failing !== null, wasSeen: seenLines.length > 0, seenLines, failing, duration });
    });
  });
