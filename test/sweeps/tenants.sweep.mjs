/**
 * Tenants: each operation that takes an id loses its tenant condition, and a test has to turn red. Which ones take an id
 * is what their schemas say: a path, or a member of a query or a body that is named like one. Those whose ids are not of one
 * tenant stand in `tenants.exceptions.yaml` with the reason.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../../bin/setup.mjs';
import { runFile } from './run-file.mjs';

const hook = './test/sweeps/owners-tenant.hook.mjs';
const gap = /^no test yet: \S/;
/** It tries all ids, on one store. */
const everyId = { file: 'test/contract/other-tenant.test.ts', tests: '/SQLite/' };
/** Operations that address a tenant by its name, and those that need a thing which no other operation makes. */
const ofFeature = {
  tenants: { file: 'test/features/tenants/tenants.test.ts', tests: '/SEC-31/' },
  egressPolicies: { file: 'test/features/provider-access/provider-access.test.ts', tests: '/SEC-31/' },
  providerBindings: { file: 'test/features/provider-access/provider-access.test.ts', tests: '/SEC-31/' },
  'a2a.card': { file: 'test/features/a2a/card.test.ts', tests: '/A2A-5 A2A-11/' },
  'a2a.call': { file: 'test/features/a2a/messages.test.ts', tests: '/A2A-4 the tenant/' },
  'mcpServers.refresh': { file: 'test/features/mcp-servers/servers.test.ts', tests: '/MCP-1 servers.*SQLite/' },
  'remoteAgents.approve': {
    file: 'test/features/remote-agents/card-pinning.test.ts',
    tests: '/MCP-19 with Block.*SQLite/',
  },
  remoteAgents: { file: 'test/features/remote-agents/defined-agents.test.ts', tests: '/AGENT-46.*SQLite/' },
  policyTests: {
    file: 'test/features/policy-tests/policy-tests.test.ts',
    tests: '/another tenant sees nothing.*SQLite/',
  },
  'emergency.resume': {
    file: 'test/features/emergency/emergency.test.ts',
    tests: '/a tenant stops its own agents.*SQLite/',
  },
};
const testsFor = (id) => ofFeature[id] ?? ofFeature[id.split('.')[0]] ?? everyId;

const isId = (name) => /(?:^id|Ids?|_id|^conversation|[aA]gentName|[sS]killName|targetName|^name|^model)$/.test(name);

/** Whether a schema has a member that names a thing. */
const namesThing = (schema) => {
  if (typeof schema !== 'object' || schema === null) return false;
  if (Array.isArray(schema)) return schema.some(namesThing);
  const { properties = {}, anyOf, allOf, oneOf, items } = schema;
  return (
    Object.entries(properties).some(([name, member]) => isId(name) || namesThing(member)) ||
    [anyOf, allOf, oneOf, items].some(namesThing)
  );
};

const takesId = ({ params, query, body }) =>
  Object.keys(params?.properties ?? {}).length > 0 ||
  Object.keys(query?.properties ?? {}).some(isId) ||
  namesThing(body);

export const tenantsSweep = async ({ only, part, parts, workers, isVerbose, scratch, variables }) => {
  const { operations } = await import('../../src/operations.ts');
  const { operationEntries } = await import('../../src/core/dispatch.ts');
  const ids = operationEntries(operations)
    .filter(({ id, operation }) => operation.role !== null && takesId(operation) && only.test(id))
    .map(({ id }) => id)
    .filter((_id, index) => index % parts === part - 1);
  const exceptions = parse(readFileSync(join(root, 'test/sweeps/tenants.exceptions.yaml'), 'utf8')) ?? {};
  const runWith = ({ file, tests }, operation) =>
    runFile({
      file,
      hook,
      scratch,
      options: [`--test-name-pattern=${tests}`],
      variables: { ...variables, ACP_SWEEP_OPERATION: operation },
    });
  for (const chosen of new Set(ids.map(testsFor))) {
    const { isRed, failing } = await runWith(chosen, '');
    if (isRed) throw new Error(`${chosen.file} fails with nothing broken: ${failing}`);
  }

  const queue = [...ids];
  const missing = [];
  const gaps = [];
  const stale = [];
  let noticed = 0;
  const work = async () => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      const { isRed, wasSeen, failing } = await runWith(testsFor(id), id);
      const redIn = isRed && wasSeen ? failing : null;
      const reason = exceptions[id];
      if (redIn !== null) noticed += 1;
      if (redIn !== null && reason !== undefined) stale.push(id);
      if (redIn === null && reason === undefined) missing.push(id);
      if (redIn === null && gap.test(reason ?? '')) gaps.push(`${id}: ${reason}`);
      if (isVerbose || redIn === null)
        console.log(`${id}  ${redIn ?? `no test notices${reason === undefined ? '' : `: ${reason}`}`}`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));

  console.log(
    `tenants: ${ids.length} operations with an id swept, ${noticed} noticed, ` +
      `${ids.length - noticed - missing.length - gaps.length} excepted with a reason, ${gaps.length} without a test yet, ` +
      `${missing.length} unexplained`,
  );
  for (const line of gaps) console.log(`  ${line}`);
  for (const id of missing) console.log(`  not noticed: ${id}`);
  for (const id of stale) console.log(`  stale exception: a test notices ${id}`);
  return missing.length + stale.length === 0;
};
