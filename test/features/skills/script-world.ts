import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import { auditReadingStore } from '../../../src/features/audit/audit-reading.store.ts';
import { createAuditLog } from '../../../src/features/audit/index.ts';
import { grantStore } from '../../../src/features/skills/grants.store.ts';
import type { AgentSkill } from '../../../src/features/skills/host-skills.ts';
import { findIsolation } from '../../../src/features/skills/script-isolation.ts';
import { createScriptQueue } from '../../../src/features/skills/script-queue.ts';
import { createScripts, scriptEnvironment } from '../../../src/features/skills/script-runner.ts';
import { createScriptWatch } from '../../../src/features/skills/script-watch.ts';
import { skillContent } from '../../../src/features/skills/skills.content.ts';
import { openTestStore } from '../../support/opened-store.ts';

export interface WorldOptions {
  readonly origin?: 'host' | 'stored';
  readonly granted?: boolean;
  readonly schema?: string;
  readonly timeoutMs?: number;
  readonly maxOutputBytes?: number;
  readonly perTenant?: number;
  readonly total?: number;
  readonly interpreter?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Of a store in a file; default: one in memory. */
  readonly folder?: string;
  /** `none`: as on a system without PID namespaces. Default: what this one has. */
  readonly isolation?: 'none';
}

/** A runner of real processes on a real store, with one skill whose script is given. */
export const scriptWorld = async (t: TestContext, source: string, options: WorldOptions = {}) => {
  const { storage } = await openTestStore(t, options.folder === undefined ? null : join(options.folder, 'data/acp.db'));
  const temporary = mkdtempSync(join(tmpdir(), 'acp-scripts-'));
  const environment = { PATH: '/usr/bin:/bin', ...options.environment };
  const audit = createAuditLog({ storage, telemetry: noTelemetry(), log: silentLogger, now: Date.now, newId });
  const grants = storage.stores(grantStore);
  const skill: AgentSkill = {
    ...skillContent({
      name: 'pdf',
      description: 'Works on files.',
      instructions: 'Go.',
      resources: [
        { name: 'data/in.txt', content: 'from a resource\n' },
        { name: 'logo.bin', content: 'AP+JUA==', encoding: 'base64', mediaType: 'application/octet-stream' },
      ],
      scripts: [{ name: 'go', extension: 'sh', content: source, parametersSchema: options.schema ?? null }],
    }),
    origin: options.origin ?? 'host',
    fingerprint: 'f',
  };
  const skills = new Map([[skill.name, skill]]);
  const stopping = new AbortController();
  const warnings: Record<string, unknown>[] = [];
  const queue = createScriptQueue({ perTenant: options.perTenant ?? 2, total: options.total ?? 8 });
  const scripts = createScripts({
    settings: {
      Enabled: true,
      PlatformIsolationAcknowledged: true,
      Isolation: 'Auto',
      AllowStoredScripts: false,
      SkillRoots: [],
      Interpreters: { sh: { Command: options.interpreter ?? '/bin/sh', Arguments: [] } },
      EnvironmentAllowList: ['PATH', 'HOME'],
      Timeout: options.timeoutMs ?? 20_000,
      MaxOutputBytes: options.maxOutputBytes ?? 262_144,
      MaxArgumentBytes: 64,
      MaxScriptContentLength: 65_536,
      MaxScriptsPerSkill: 10,
      MaxConcurrentPerTenant: options.perTenant ?? 2,
      MaxConcurrentTotal: options.total ?? 8,
      SearchDepth: 2,
    },
    environment: scriptEnvironment(['PATH', 'HOME', 'TOKEN'], { ...environment, TOKEN: 'hush' }, new Set(['hush'])),
    grants,
    skills: { resolve: async () => skills },
    audit,
    queue,
    watch: createScriptWatch(noTelemetry(), queue.waiting),
    isolation: options.isolation === 'none' ? null : await findIsolation(),
    log: { warn: (fields) => warnings.push(fields) },
    stopping: stopping.signal,
    now: Date.now,
  });
  t.after(async () => {
    stopping.abort();
    await scripts.idle();
    rmSync(temporary, { recursive: true, force: true });
  });
  const grant = async (scriptName: string | null = null, expiresAt: number | null = null): Promise<void> =>
    grants.insert({
      id: newId(),
      tenant_id: 'default',
      skill_name: 'pdf',
      script_name: scriptName,
      granted_by: null,
      granted_at: Date.now(),
      expires_at: expiresAt,
      revoked_at: null,
    });
  if (options.granted !== false) await grant();
  const callOf = (args: Json = null, signal = new AbortController().signal) => ({
    skill,
    scriptName: 'go',
    args,
    signal,
    call: {
      run: { tenantId: 'default', agentName: 'a', runId: 'r', rootRunId: 'r', sessionId: null, userId: null },
      principal: {
        kind: 'Token' as const,
        role: 'Admin' as const,
        scopes: null,
        actor: 'token',
        userId: null,
        apiKey: null,
        permissions: null,
      },
      requestId: 'q',
    },
  });
  const everything = { fromId: null, toId: null };
  const actions = async () =>
    (await storage.stores(auditReadingStore).page('default', everything, null, 100)).map(({ action, after }) => [
      action,
      JSON.parse(after ?? 'null').gate ?? null,
    ]);
  return {
    storage,
    temporary,
    warnings,
    skill,
    skills,
    scripts,
    stopping,
    grants,
    grant,
    callOf,
    actions,
    run: (args?: Json) => scripts.run(callOf(args)),
  };
};

/** Processes of the machine whose command line or environment names the text. */
export const processesWith = async (text: string): Promise<string[]> => {
  const { readFile } = await import('node:fs/promises');
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`));
  const found: string[] = [];
  for (const pid of pids) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
    const state = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
    if (line.includes(text) && !/\) Z /.test(state)) found.push(pid);
  }
  return found;
};
