import assert from 'node:assert/strict';
import { type OpenApp, overHttp, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { calls, decide, messagesOf, openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { dayMs, daysAgo, swept } from '../retention/retention-world.ts';
import { collect, followToEnd, refusal, runJson, runStream, stream } from '../runs/run-calls.ts';
import { save as saveSchedule } from '../schedules/schedule-world.ts';
import { save, skill } from '../skills/skill-bodies.ts';

/** Values by name and attributes, as a scraper sees them: `name{a="b"}`. */
const scrape = async (app: TestApp, token?: string): Promise<Map<string, number>> => {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(`${app.url}/metrics`, { headers });
  assert.equal(answer.status, 200);
  const lines = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
};

/** Each series that is given has its value; a number that time decides is only above zero. */
const assertSeries = (
  found: ReadonlyMap<string, number>,
  expected: Readonly<Record<string, number | 'some'>>,
): void => {
  const names = [...found.keys()].filter((name) => !/_bucket/.test(name)).join('\n');
  for (const [name, value] of Object.entries(expected)) {
    const actual = found.get(name);
    assert.ok(
      value === 'some' ? (actual ?? 0) > 0 : actual === value,
      `${name} is ${actual}, not ${value}, of\n${names}`,
    );
  }
};

const withMetrics = { Metrics: { Path: '/metrics' } };

overHttp('OBS-20, OBS-22, OBS-23 a scrape after runs, jobs and refusals has what they were', async (open) => {
  const app = await open({
    host: withMetrics,
    script: [{ reply: { text: 'Yes.', usage: { inputTokens: 20, outputTokens: 10 } } }],
    agents: [{ name: 'helper' }, { name: 'small' }],
    service: {
      Pricing: { Currency: 'EUR', demo: { 'demo-1': { Input: 1, Output: 2 } } },
      Observability: { EnableQuotaUsageGauge: true, EnableJobQueueDepthGauge: true, QuotaUsageRefreshInterval: '1s' },
      AsyncRun: { MaxAttempts: 1 },
      Scheduling: { RunWorker: true, Lanes: ['default', 'fast'] },
      Attachments: { MaxBytes: 64 },
    },
  });
  await saveQuota(app.client, { agentName: 'small', period: 'Daily', maxRuns: 1, maxCost: 5 });
  await saveQuota(app.client, { period: 'Monthly', maxTokens: 1000 });
  const { runId } = await runJson(app.client, 'small', { message: 'Hi', sessionId: 's-1' });
  assert.equal((await refusal(runJson(app.client, 'small', 'Hi'))).code, 'quota-exceeded');
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.ok(events.length > 0);
  // A lane that this process takes, one that it leaves to others.
  const queue = async (lane: string): Promise<string> => {
    const answer = await fetch(`${app.url}/api/agents/helper/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', prefer: 'respond-async' },
      body: JSON.stringify({ message: 'Hi', lane }),
    });
    assert.equal(answer.status, 202);
    return ((await answer.json()) as { runId: string }).runId;
  };
  await followToEnd(app.client, await queue('fast'));
  await queue('slow');
  const upload = async (bytes: string): Promise<number> => {
    const form = new FormData();
    form.set('file', new Blob([bytes]), 'a.txt');
    return (await fetch(`${app.url}/api/attachments`, { method: 'POST', body: form })).status;
  };
  assert.deepEqual([await upload('twelve bytes'), await upload('x'.repeat(65)), await upload('')], [201, 413, 400]);
  assert.equal((await fetch(`${app.url}/api/runs`, { headers: { authorization: 'Bearer nonsense' } })).status, 401);
  const reader = await app.client.keys.create({
    body: { name: 'r', scopes: ['RunsRead', 'PlatformRead'], role: 'Reader' },
  });
  const readerKey = reader.body.plaintextKey;
  const denied = await fetch(`${app.url}/api/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${readerKey}` },
  });
  assert.equal(denied.status, 403);

  const agent = (name: string) => `gen_ai_agent_name="${name}",gen_ai_agent_version="1",acp_tenant_id="default"`;
  const quota = 'acp_tenant_id="default",acp_quota_scope="agent",gen_ai_agent_name="small",acp_quota_period="Daily"';
  const found = await scrape(app, readerKey);
  assertSeries(found, {
    [`acp_runs_total{${agent('small')},acp_run_status="Completed",acp_run_kind="Agent",acp_run_streaming="false"}`]: 1,
    [`acp_run_duration_seconds_count{${agent('small')},acp_run_status="Completed",acp_run_kind="Agent"}`]: 1,
    [`acp_tokens_total{${agent('small')},gen_ai_provider_name="demo",gen_ai_request_model="demo-1",gen_ai_token_type="input"}`]: 20,
    [`acp_run_cost_total{${agent('small')},gen_ai_request_model="demo-1",acp_cost_currency="EUR"}`]: 0.00004,
    'acp_session_turns_total{acp_session_outcome="saved"}': 1,
    'acp_quota_rejections_total{acp_quota_scope="agent",acp_quota_period="Daily",acp_quota_metric="Runs"}': 1,
    [`acp_quota_usage{${quota},acp_quota_metric="Runs"}`]: 1,
    [`acp_quota_limit{${quota},acp_quota_metric="Runs"}`]: 1,
    [`acp_quota_usage{${quota},acp_quota_metric="Cost"}`]: 0.00004,
    [`acp_quota_limit{${quota},acp_quota_metric="Cost"}`]: 5,
    'acp_quota_limit{acp_tenant_id="default",acp_quota_scope="tenant",acp_quota_period="Monthly",acp_quota_metric="Tokens"}': 1000,
    'acp_job_executions_total{acp_job_handler_key="acp.agent-run",acp_job_lane="fast",acp_job_status="Completed"}': 1,
    'acp_job_duration_seconds_count{acp_job_handler_key="acp.agent-run",acp_job_lane="fast",acp_job_status="Completed"}': 1,
    'acp_job_wait_seconds_count{acp_job_handler_key="acp.agent-run",acp_job_lane="fast"}': 1,
    'acp_job_queue_depth{acp_job_lane="slow",acp_job_status="Pending"}': 1,
    'acp_attachments_stored_bytes_total{acp_attachment_media_type="text/plain"}': 12,
    'acp_attachments_refused_total{acp_attachment_reason="size"}': 1,
    'acp_attachments_refused_total{acp_attachment_reason="empty"}': 1,
    'acp_auth_rejections_total{acp_auth_reason="unauthenticated"}': 1,
    'acp_auth_rejections_total{acp_auth_reason="insufficient-role"}': 1,
    'acp_audit_entries_total{acp_audit_action="apikey.create"}': 1,
    'acp_sse_streams{acp_sse_kind="run"}': 0,
    acp_approvals_pending: 0,
  });
  const everything = [...found.keys()].join('\n');
  for (const secret of [runId, 's-1', readerKey, 'user']) assert.ok(!everything.includes(secret), secret);
});

overHttp(
  'OBS-20 approvals, tools and scripts: what was decided and what ran is counted by tool and outcome',
  async (open: OpenApp) => {
    const app = await openApprovals(open, {
      host: { ...withMetrics, SkillScripts: { Register: true } },
      service: {
        Skills: {
          Scripts: { PlatformIsolationAcknowledged: true, AllowStoredScripts: true, Interpreters: { sh: '/bin/sh' } },
        },
        Observability: { SuccessSampleRatio: 1 },
      },
    });
    const { runId, rows } = await queueWaiting(app, 's-1', ['pay', { amount: 5 }], ['wipe']);
    const [pay, wipe] = rows;
    assert.equal((await scrape(app)).get('acp_approvals_pending'), 2);
    await decide(app.client, pay?.id ?? '', true);
    const { continuationRunId } = await decide(app.client, wipe?.id ?? '', false);
    await followToEnd(app.client, continuationRunId ?? '');
    await runJson(app.client, 'helper', calls(['look'], ['made-up-by-the-model']));
    const asked = await runJson(app.client, 'helper', { message: calls(['pay', { amount: 1 }]), sessionId: 's-2' });
    const [request] = asked.approvals;
    await runJson(app.client, 'helper', {
      sessionId: 's-2',
      approvals: [{ requestId: request?.requestId ?? '', approved: true }],
    });

    await save(
      app,
      skill('pdf', { scripts: [{ name: 'go', extension: 'sh', content: 'exit 3\n', parametersSchema: null }] }),
    );
    await app.client.grants.create({ body: { skillName: 'pdf' } });
    await app.createAgent({ name: 'clerk', model: { provider: 'local', model: 'any' }, skillNames: ['pdf'] });
    const script = calls(['run_skill_script', { skillName: 'pdf', scriptName: 'go' }]);
    const waiting = await runJson(app.client, 'clerk', { message: script, sessionId: 's-3' });
    const ran = await runJson(app.client, 'clerk', {
      sessionId: 's-3',
      approvals: [{ requestId: waiting.approvals[0]?.requestId ?? '', approved: true }],
    });
    assert.equal(messagesOf(app.simulator.requests.at(-1) ?? assert.fail('a model was asked')).length > 0, true);

    assertSeries(await scrape(app), {
      'acp_approvals_total{acp_approval_status="Approved",acp_approval_channel="mailbox",gen_ai_tool_name="pay"}': 1,
      'acp_approvals_total{acp_approval_status="Rejected",acp_approval_channel="mailbox",gen_ai_tool_name="wipe"}': 1,
      'acp_approvals_total{acp_approval_status="Approved",acp_approval_channel="in_band",gen_ai_tool_name="pay"}': 1,
      acp_approval_wait_seconds_count: 4,
      'acp_tool_invocations_total{gen_ai_tool_name="look",acp_tool_outcome="succeeded"}': 1,
      'acp_tool_invocations_total{gen_ai_tool_name="pay",acp_tool_outcome="succeeded"}': 2,
      'acp_tool_invocations_total{gen_ai_tool_name="_OTHER",acp_tool_outcome="invalid"}': 1,
      'acp_skill_script_runs_total{acp_script_outcome="completed"}': 1,
      acp_skill_script_duration_seconds_count: 1,
      acp_skill_script_waiting: 0,
    });
    const trace = async (id: string) => (await app.client.runs.trace({ params: { runId: id } })).body.spans;
    const held = (await trace(runId)).find(({ attributes }) => attributes['gen_ai.tool.name'] === 'pay');
    assert.equal(held?.attributes['acp.approval.outcome'], 'asked');
    const spans = await trace(ran.runId);
    const span = spans.find(({ name }) => name === 'acp.skill_script');
    const parent = spans.find(({ id }) => id === span?.parentId);
    assert.equal(parent?.name, 'acp.tool.call');
    const { attributes } = span ?? assert.fail('the script has a span');
    assert.deepEqual(
      [attributes['acp.skill.name'], attributes['acp.script.name'], attributes['acp.script.exit_code']],
      ['pdf', 'go', '3'],
    );
  },
);

overHttp(
  'OBS-23 without their settings the gauges of the store are not there, and nobody reads it for them',
  async (open) => {
    const app = await open({ host: withMetrics, agents: [{ name: 'helper' }] });
    await saveQuota(app.client, { period: 'Daily', maxRuns: 5 });
    await runJson(app.client, 'helper', 'Hi');
    const names = [...(await scrape(app)).keys()].join('\n');
    assert.doesNotMatch(names, /acp_quota_|queue_depth/);
    assert.match(names, /acp_runs_total/);
  },
);

overHttp('OBS-20 a refused request is counted by the partition of the limit', async (open) => {
  const app = await open({
    host: withMetrics,
    service: { RateLimit: { Enabled: true, PermitLimit: 1, Window: '1h', QueueLimit: 0, Partition: 'Tenant' } },
  });
  const status = async () => (await fetch(`${app.url}/api/agents`)).status;
  assert.deepEqual([await status(), await status()], [200, 429]);
  assertSeries(await scrape(app), { 'acp_rate_limit_rejections_total{acp_rate_limit_partition="Tenant"}': 1 });
});

overHttp('OBS-20 busy sessions, sweeps and refused addresses are counted', async (open) => {
  const app = await open({
    clock: testClock({ at: daysAgo(2) }),
    host: withMetrics,
    simulator: {},
    script: [{ when: { message: 'wait' }, reply: { text: 'So far', stall: true } }, { reply: { text: 'Yes.' } }],
    agents: [{ name: 'helper' }],
  });
  const { frames, runId } = await stream(app.client, 'helper', { message: 'wait', sessionId: 's-1' });
  const reading = collect(frames);
  assert.equal(
    (await refusal(runJson(app.client, 'helper', { message: 'Hi', sessionId: 's-1' }))).code,
    'session-busy',
  );
  assertSeries(await scrape(app), {
    'acp_session_busy_total{acp_session_concurrency="Reject"}': 1,
    'acp_sse_streams{acp_sse_kind="run"}': 1,
    'acp_run_active{acp_run_kind="Agent"}': 1,
  });
  await app.client.runs.cancel({ params: { runId } });
  await reading;
  await app.clock.jump(2 * dayMs);
  await app.client.retention.save({ params: { target: 'RunEvents' }, body: { maxAgeDays: 1 } });
  await swept(app, 'RunEvents');
  const binding = { apiKeyConfigurationName: 'Service:ProviderKeys:any', endpoint: 'https://10.0.0.1/v1' };
  const saving = app.client.providerBindings.save({
    params: { tenantId: 'default', provider: 'openai' },
    body: binding,
  });
  const { code } = await refusal(saving);
  const found = await scrape(app);
  assertSeries(found, {
    'acp_session_turns_total{acp_session_outcome="saved"}': 1,
    'acp_retention_deleted_rows_total{acp_retention_target="RunEvents"}': 'some',
    'acp_retention_duration_seconds_count{acp_retention_target="RunEvents"}': 1,
    'acp_job_executions_total{acp_job_handler_key="acp.retention",acp_job_lane="default",acp_job_status="Completed"}': 1,
  });
  assert.equal(code, 'target-not-allowed');
  assertSeries(found, { 'acp_egress_refusals_total{acp_egress_client="provider",acp_egress_phase="save"}': 1 });
});

overHttp('JOB-12 OBS-23 a job that has failed before anybody worked on it is one that ended', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper', cron: '* * * * *' };
  await saveSchedule(app.client, 'long', { ...batch, payload: ['a', 'b', 'c'] });
  await app.close();
  const fewer = { host: withMetrics, service: { Scheduling: { MaxItemsPerJob: 2 } } };
  const next = await open({ folder: app.folder, ...fewer, clock: testClock({ at: app.clock.now() }) });
  await next.clock.advance(60_000);
  await eventually('it has its job', async () => (await next.client.jobs.list({ query: {} })).body.length > 0);
  assertSeries(await scrape(next), {
    'acp_job_executions_total{acp_job_handler_key="acp.agent-batch",acp_job_lane="default",acp_job_status="Failed"}': 1,
  });
});
