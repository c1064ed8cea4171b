/** Runs one test file with something broken, and ends it at its first failing test. */
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { pinnedNode, root } from '../../bin/setup.mjs';

/** Longer than any file takes alone; a file that takes longer has not turned red. */
const fileTimeoutMs = 60_000;
let count = 0;
/** Files that run: the end of the sweep stops them. */
const ends = new Set();
process.on('exit', () => {
  for (const end of ends) end();
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

/** `{isRed, wasSeen}`; seen: the hook had something to break. `failing` gives the name of the test. */
export const runFile = ({ file, hook, scratch, variables, options = [] }) =>
  new Promise((resolve) => {
    count += 1;
    const seen = join(scratch, `seen-${count}`);
    const child = spawn(
      pinnedNode(),
      ['--import', hook, '--test', '--test-reporter=tap', '--test-timeout=30000', ...options, file],
      {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
        env: {
          ...process.env,
          TMPDIR: scratch,
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
    const timer = setTimeout(end, fileTimeoutMs);
    let failing = null;
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      text = text.slice(-500) + piece;
      const line = /^\s*not ok \d+ - (.*)$/m.exec(text);
      if (line === null || failing !== null) return;
      failing = line[1];
      end();
    });
    child.once('close', () => {
      clearTimeout(timer);
      ends.delete(end);
      const wasSeen = (statSync(seen, { throwIfNoEntry: false })?.size ?? 0) > 0;
      resolve({ isRed: failing !== null, wasSeen, failing });
    });
  });
