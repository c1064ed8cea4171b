/**
 * `npm run test:contract`: the rules of the service, asked over HTTP. Starts a server of its own, unless one is named.
 *
 *   npm run test:contract                                          the sources
 *   npm run test:contract -- --program dist/acp                    a built executable
 *   npm run test:contract -- --url http://127.0.0.1:7070 --token … a server that runs test/conformance/target/service.yaml
 *   npm run test:contract -- test/conformance/runs.conformance.ts  one area
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { ensureInstalled, pinnedNode, root } from '../../bin/setup.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: 'string' }, token: { type: 'string' }, program: { type: 'string' } },
});

await ensureInstalled();
const env = { ...process.env };
if (values.url !== undefined) env.ACP_CONFORMANCE_URL = values.url;
if (values.token !== undefined) env.ACP_CONFORMANCE_TOKEN = values.token;
if (values.program !== undefined) env.ACP_CONFORMANCE_PROGRAM = values.program;

const node = async (args) => {
  const child = spawn(pinnedNode(), args, { cwd: root, env, stdio: 'inherit' });
  const [code] = await once(child, 'close');
  return code ?? 1;
};

const files = positionals.length > 0 ? positionals : ['test/conformance/*.conformance.ts'];
const options = ['--test', '--test-reporter=spec', '--test-concurrency=2', '--test-timeout=120000'];
const failed = await node([...options, ...files]);
const incomplete = positionals.length > 0 ? 0 : await node([join(root, 'test/conformance/report.ts')]);
process.exitCode = failed || incomplete;
