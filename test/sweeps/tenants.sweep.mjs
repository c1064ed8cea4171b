/**
 * Tenants: each operation that takes an id loses its tenant condition, and `test/contract` has to turn red. Which ones take an id
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
/** It tries all ids; operations that address a tenant by its name are tried by the tests of their features. */
const everyId = 'test/contract/other-tenant.test.ts';
const ofFeature = {
  tenants: 'test/features/tenants/tenants.test.ts',
  egressPolicies: 'test/features/provider-access/provider-access.test.ts',
  providerBindings: 'test/features/provider-access/provider-access.test.ts',
};
const fileFor = (id) => ofFeature[id.split('.')[0]] ?? everyId;
const optionsFor = (file) => (file === everyId ? ['--test-name-pattern=/SQLite/'] : ['--test-name-pattern=/SEC-31/']);

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
  const runWith = (file, operation) =>
    runFile({
      file,
      hook,
      scratch,
      options: optionsFor(file),
      variables: { ...variables, ACP_SWEEP_OPERATION: operation },
    });
  for (const file of new Set(ids.map(fileFor))) {
    const { isRed, failing } = await runWith(file, '');
    if (isRed) throw new Error(`${file} fails with nothing broken: ${failing}`);
  }

  const queue = [...ids];
  const missing = [];
  const gaps = [];
  const stale = [];
  let noticed = 0;
  const work = async () => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      const { isRed, wasSeen, failing } = await runWith(fileFor(id), id);
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
