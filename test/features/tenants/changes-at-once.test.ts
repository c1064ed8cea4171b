import assert from 'node:assert/strict';
import { AcpError } from '../../../src/contract/errors.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { agentContent } from '../../../src/features/agents/agents.content.ts';
import { agentStore } from '../../../src/features/agents/agents.store.ts';
import { approvalRuleStore, type StandingRule } from '../../../src/features/approvals/index.ts';
import { memoryStore } from '../../../src/features/memory/memory.store.ts';
import { keyStore } from '../../../src/features/security/keys.store.ts';
import { grantStore } from '../../../src/features/skills/grants.store.ts';
import { skillContent } from '../../../src/features/skills/skills.content.ts';
import { skillStore } from '../../../src/features/skills/skills.store.ts';
import { tenantStore } from '../../../src/features/tenants/tenants.store.ts';
import { forEachDurableStore, openForTwo, type TestStore } from '../../support/store.ts';

// Changes that look before they write, made by two processes at once: what each sees is what is so when it is committed.

type Work<T> = (storage: RootStorage, process: number) => Promise<T>;

/** What two processes make of it at once, or, where one of them has the file to itself, in both orders. */
const both = async <T>(storages: readonly RootStorage[], { sql }: TestStore, work: Work<T>, round: number) => {
  const works = storages.map((storage, process) => () => work(storage, process));
  if (sql === 'postgres') return Promise.allSettled(works.map((each) => each()));
  const settled: PromiseSettledResult<T>[] = [];
  for (const each of round % 2 === 0 ? works : works.toReversed())
    settled.push(...(await Promise.allSettled([each()])));
  return settled;
};

const values = <T>(settled: readonly PromiseSettledResult<T>[]): T[] =>
  settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
const failures = (settled: readonly PromiseSettledResult<unknown>[]): unknown[] =>
  settled.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));

const rounds = 8;

/** Each round on two open stores, with a name of its own. */
const atOnce = (
  name: string,
  body: (
    name: string,
    first: RootStorage,
    both: <T>(work: Work<T>) => Promise<readonly PromiseSettledResult<T>[]>,
  ) => Promise<void>,
): void =>
  forEachDurableStore(name, async (t, store) => {
    const storages = await openForTwo(t, store);
    for (let round = 0; round < rounds; round += 1)
      await body(`n${round}`, storages[0], (work) => both(storages, store, work, round));
  });

const agent = (name: string, instructions: string) =>
  agentContent({ name, instructions, model: { provider: 'demo', model: 'demo-1' } });
const saving = { updatedAt: 1, updatedBy: null };

atOnce('AGENT-8 two processes that create an agent of one name make one', async (name, first, both) => {
  const made = values(
    await both(({ transaction }, by) =>
      transaction((stores) => stores(agentStore).create('t', agent(name, `By ${by}.`), saving)),
    ),
  );
  assert.equal(made.length, 2);
  assert.equal(made.filter((each) => each === null).length, 1);
  assert.equal((await first.stores(agentStore).versions('t', name)).length, 1);
});

atOnce(
  'AGENT-10 of two processes that save on top of one version, one is told of the other',
  async (name, first, both) => {
    await first.transaction((stores) => stores(agentStore).create('t', agent(name, 'First.'), saving));
    const append = (expectedVersion: number | null) =>
      both(({ transaction }, by) =>
        transaction((stores) =>
          stores(agentStore).append('t', agent(name, `By ${by}.`), { ...saving, expectedVersion }),
        ),
      );
    const refusals = failures(await append(1));
    assert.deepEqual(
      refusals.map((error) => error instanceof AcpError && error.code),
      ['version-conflict'],
    );
    assert.deepEqual(
      values(await append(null))
        .map(({ version }) => version)
        .toSorted(),
      [3, 4],
    );
  },
);

const skill = (name: string, description: string) =>
  skillContent({ name, description, instructions: 'Do it.', scripts: [{ name: 'run.sh', content: 'true' }] } as never);

atOnce('SKILL-3 two processes that save a skill make two versions of it', async (name, first, both) => {
  const save: Work<{ after: { version: number; fingerprint: string } }> = ({ transaction }, by) =>
    transaction((stores) => stores(skillStore).save('t', skill(name, `By ${by}.`), { id: `${name}-${by}`, at: 1 }));
  const saved = values(await both(save)).map(({ after }) => after);
  assert.deepEqual(saved.map(({ version }) => version).toSorted(), [1, 2]);
  const stored = await first.stores(skillStore).find('t', name);
  assert.equal(stored?.fingerprint, saved.find(({ version }) => version === 2)?.fingerprint);
});

atOnce('GRANT-5 two processes that grant one scope leave one active grant', async (name, first, both) => {
  const grant = { skill_name: name, script_name: null, granted_by: null, granted_at: 1, expires_at: null };
  const settled = await both(({ transaction }, by) =>
    transaction(async (stores) => {
      await stores(grantStore).revoke('t', { skillName: name, scriptName: null }, 2);
      await stores(grantStore).insert({ id: `${name}-${by}`, tenant_id: 't', ...grant, revoked_at: null });
    }),
  );
  assert.deepEqual(failures(settled), []);
  const grants = (await first.stores(grantStore).list('t')).filter(({ skill_name }) => skill_name === name);
  assert.deepEqual([grants.length, grants.filter(({ revoked_at }) => revoked_at === null).length], [2, 1]);
});

atOnce('a grant and the removal of its skill at once leave no grant without a skill', async (name, first, both) => {
  await first.transaction((stores) => stores(skillStore).save('t', skill(name, 'There.'), { id: name, at: 1 }));
  await both(({ transaction }, by) =>
    transaction(async (stores) => {
      if (by === 0) {
        await stores(skillStore).remove('t', name);
        await stores(grantStore).revoke('t', { skillName: name }, 2);
        return;
      }
      if ((await stores(skillStore).find('t', name)) === null) return;
      const grant = { skill_name: name, script_name: null, granted_by: null, granted_at: 1, expires_at: null };
      await stores(grantStore).insert({ id: name, tenant_id: 't', ...grant, revoked_at: null });
    }),
  );
  assert.equal(await first.stores(grantStore).isGranted('t', name, 'run.sh', 3), false);
});

atOnce('two processes that save a tenant make one, whose id stays', async (name, first, both) => {
  const save: Work<{ after: { id: string } }> = ({ transaction }, by) =>
    transaction((stores) =>
      stores(tenantStore).save({ id: `${name}-${by}`, slug: name, display_name: `By ${by}`, created_at: 1 }),
    );
  const saved = values(await both(save)).map(({ after }) => after.id);
  const stored = await first.stores(tenantStore).find(name);
  assert.deepEqual(saved, [stored?.id, stored?.id]);
});

atOnce('RULE-10 two processes that store one rule store it once', async (name, first, both) => {
  const rule = (by: number): StandingRule => ({
    id: `${name}-${by}`,
    tenantId: 't',
    agentName: null,
    toolName: name,
    argumentsHash: null,
    argumentConditions: [],
    labels: {},
    createdBy: null,
    createdAt: 1,
  });
  const settled = await both(({ transaction }, by) =>
    transaction(async (stores) => {
      const rules = stores(approvalRuleStore);
      const same = await rules.same(rule(by));
      if (same === null) await rules.insert(rule(by));
      return (same ?? rule(by)).id;
    }),
  );
  const stored = (await first.stores(approvalRuleStore).list('t')).filter(({ toolName }) => toolName === name);
  assert.equal(stored.length, 1);
  assert.deepEqual(values(settled), [stored[0]?.id, stored[0]?.id]);
});

atOnce('of two processes that revoke a key, one has', async (name, first, both) => {
  const row = { id: name, tenant_id: 't', name, key_hash: name, key_prefix: 'k', role: 'Reader', scopes: '[]' };
  const times = { expires_at: null, revoked_at: null, last_used_at: null, created_by: null, created_at: 1 };
  await first.transaction((stores) => stores(keyStore).insert({ ...row, ...times }));
  const revoke: Work<boolean> = ({ transaction }) =>
    transaction(async (stores) => {
      const key = await stores(keyStore).find('t', name);
      return key !== undefined && stores(keyStore).revoke('t', name, 2);
    });
  assert.deepEqual(values(await both(revoke)).toSorted(), [false, true]);
});

atOnce('two processes that save files do not both fit into the same room', async (name, first, both) => {
  const owner = { tenantId: 't', sessionId: name, runId: 'r' };
  const limit = (otherBytes: number): void => {
    if (otherBytes + 60 > 100) throw new AcpError('validation-failed', 'There is no room.');
  };
  const settled = await both((storage, by) =>
    storage.stores(memoryStore).saveFile(owner, `file-${by}`, 'x'.repeat(60), limit, 1),
  );
  assert.equal(failures(settled).length, 1);
  assert.equal((await first.stores(memoryStore).files(owner)).length, 1);
});
