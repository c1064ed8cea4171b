/**
 * The server of PostgreSQL of a test run: one for all test files, and none where no file runs on every store. Whoever
 * has a server of their own names it, as a superuser, in `ACP_TEST_POSTGRES`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { pinnedNode, root } from '../bin/setup.mjs';

const variable = 'ACP_TEST_POSTGRES';
const onStores = /\b(?:forEach(?:Durable|Shared|Owned|Http)?(?:Store|Service)|testStores|durableStores|findPostgres)\b/;
const imported = /^(?:import|export)\b[^;]*?\bfrom '(\.[^']+)'/gm;
/** They have those names for others. */
const support = ['test/support/app.ts', 'test/support/store.ts'];

/** Whether one of the test files, or a file of tests that it imports, runs something on every store. */
export const needStores = (root, files) => {
  const seen = new Set(support.map((file) => join(root, file)));
  const uses = (path) => {
    if (seen.has(path) || !path.startsWith(join(root, 'test'))) return false;
    seen.add(path);
    // A pattern is a file that nobody looked into.
    if (!existsSync(path)) return true;
    const text = readFileSync(path, 'utf8');
    if (onStores.test(text)) return true;
    return [...text.matchAll(imported)].some(([, other]) => uses(resolve(dirname(path), other)));
  };
  return [...files].some((file) => uses(resolve(root, file)));
};

/** Starts it for this run; null: there is none to start, and a test says why. */
export const startPostgres = async (variables) => {
  if (process.env[variable] !== undefined) return null;
  const child = spawn(pinnedNode(), [join(root, 'test/support/postgres-server-main.ts')], {
    env: { ...process.env, ...variables },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let said = '';
  for await (const part of child.stdout) {
    said += part;
    if (said.endsWith('\n')) break;
  }
  const url = said.trim();
  return {
    variables: url === '' ? {} : { [variable]: url },
    // It ends the server when nobody holds its input any more, so also when this process is killed.
    async stop() {
      child.stdin.end();
      await closed;
    },
  };
};
