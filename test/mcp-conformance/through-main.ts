/**
 * What the suite starts as a client of its server while the suite is a client of ours, too: an agent that is offered over MCP
 * has the tool of the suite's server. Takes the revision that the caller speaks, and the address of the server.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { throughName } from './scenarios.ts';
import { must, saveAgent, serviceVariable } from './service-calls.ts';
import { checksIn, runSuite } from './suite.ts';

const [revision = '', endpoint = ''] = process.argv.slice(2);
const asked = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'];

await must('PUT', `/api/mcp-servers/${throughName}`, { endpoint, requiresApproval: false });
const looked = await must<{ servers: unknown }>('POST', `/api/mcp-servers/refresh?name=${throughName}`);
const { status } = await must<{ status: { protocolVersion: string | null } }>('GET', `/api/mcp-servers/${throughName}`);
assert.equal(status.protocolVersion, asked, JSON.stringify(looked.servers));
await saveAgent('test_simple_text', 'adds', [`${throughName}_add_numbers`]);
await saveAgent('test_tool_with_progress', 'adds-often', [`${throughName}_add_numbers`]);

const folder = mkdtempSync(join(tmpdir(), 'acp-mcp-through-'));
try {
  for (const scenario of ['tools-list', 'tools-call-simple-text', 'tools-call-with-progress']) {
    const args = ['server', '--url', `${process.env[serviceVariable]}/mcp`, '--scenario', scenario];
    const { code, output } = await runSuite([...args, '--spec-version', revision, '--output-dir', folder], {
      limitMs: 20_000,
    });
    assert.equal(code, 0, output);
  }
  const checks = checksIn(folder);
  assert.equal(checks.size, 3);
  // What the suite's server has added up, in what the suite's client has got.
  for (const scenario of ['tools-call-simple-text', 'tools-call-with-progress'])
    assert.match(JSON.stringify(checks.get(scenario)), /The sum of 5 and 3 is 8/, scenario);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
