/**
 * `npm run test:mcp-conformance`: the suite of the Model Context Protocol against the server and the client of this service,
 * and through both. `--program dist/acp` takes a built executable instead of the sources; `--only server|client|through` one part.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { ensureInstalled, pinnedNode, root } from '../../bin/setup.mjs';

await ensureInstalled();
const child = spawn(pinnedNode(), [join(root, 'test/mcp-conformance/suite-main.ts'), ...process.argv.slice(2)], {
  cwd: root,
  env: { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'acp-tests'), ...process.env },
  stdio: 'inherit',
});
const [code] = await once(child, 'close');
process.exitCode = code ?? 1;
