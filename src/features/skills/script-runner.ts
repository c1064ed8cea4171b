import { access, constants, stat } from 'node:fs/promises';
import type { OperationAudit } from '../../contract/operation.ts';
import type { Config } from '../../core/config/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { Logger } from '../../core/logger.ts';
import { type ArgumentsChecker, argumentsChecker, ToolError, ToolStop } from '../../engine/tools/index.ts';
import type { AuditLog } from '../audit/index.ts';
import type { AgentSkills } from './agent-skills.ts';
import type { GrantStore } from './grants.store.ts';
import type { AgentSkill } from './host-skills.ts';
import type { ScriptIsolation } from './script-isolation.ts';
import { type Interpreter, type ProcessSettings, runScriptProcess } from './script-process.ts';
import type { ScriptQueue } from './script-queue.ts';
import type { ScriptWatch } from './script-watch.ts';
import type { ScriptCall } from './skill-tools.ts';
import { sha256 } from './skills.content.ts';
import type { AgentSkillScriptDefinition } from './skills.schema.ts';

type ScriptSettings = Config['Service']['Skills']['Scripts'];

export interface ScriptRunnerDeps {
  readonly settings: ScriptSettings;
  /** Variables of the service that scripts may get. */
  readonly environment: Readonly<Record<string, string>>;
  readonly grants: Pick<GrantStore, 'isGranted'>;
  readonly skills: Pick<AgentSkills, 'resolve'>;
  readonly audit: Pick<AuditLog, 'tell'>;
  readonly queue: ScriptQueue;
  readonly watch: ScriptWatch;
  readonly isolation: ScriptIsolation;
  readonly log: Pick<Logger, 'warn'>;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  readonly now: () => number;
}

/** What the first four gates gave. */
interface Admitted {
  readonly script: AgentSkillScriptDefinition;
  readonly interpreter: Interpreter;
  /** One JSON object, canonical. */
  readonly input: string;
}

const scriptRun: OperationAudit = { action: 'script.run', entity: 'skill-script', mode: 'fail-closed' };
const scriptDenied: OperationAudit = { action: 'script.denied', entity: 'skill-script', mode: 'noted' };

type Gate = 'switched on' | 'grant' | 'interpreter' | 'arguments' | 'audit';

/** A gate that did not open; the reason is for the record, never for the model. */
class GateClosedError extends Error {
  readonly gate: Gate;

  constructor(gate: Gate, reason: string) {
    super(reason);
    this.name = 'GateClosedError';
    this.gate = gate;
  }
}

// One text for every gate, so that a model cannot feel its way along them.
const refusedText = 'The script could not be run.';

const refusal = (gate: Gate, reason: string): ToolStop =>
  new ToolStop('failed', refusedText, `${refusedText} Gate "${gate}": ${reason}.`);

const isExecutable = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
};

const checkers = new WeakMap<AgentSkillScriptDefinition, ArgumentsChecker>();

const checkerOf = (script: AgentSkillScriptDefinition, schema: string): ArgumentsChecker => {
  const checker = checkers.get(script) ?? argumentsChecker(JSON.parse(schema), { recursion: 'refused' });
  checkers.set(script, checker);
  return checker;
};

const inputOf = (script: AgentSkillScriptDefinition, { args }: ScriptCall, maxBytes: number): string => {
  const value = args ?? {};
  const input = canonicalJson(value);
  const size = Buffer.byteLength(input);
  if (size > maxBytes) throw new GateClosedError('arguments', `they have ${size} bytes, more than ${maxBytes}`);
  if (script.parametersSchema === null) {
    if (input !== '{}') throw new GateClosedError('arguments', 'the script takes none');
    return input;
  }
  const [mistake] = checkerOf(script, script.parametersSchema)(value);
  if (mistake !== undefined) throw new GateClosedError('arguments', mistake);
  return input;
};

const scriptOf = (skill: AgentSkill, name: string): AgentSkillScriptDefinition => {
  const script = skill.scripts.find((candidate) => candidate.name === name);
  if (script !== undefined) return script;
  const names = skill.scripts.map((candidate) => candidate.name).join(', ');
  throw new ToolError(`The skill ${skill.name} has no such script. Scripts: ${names === '' ? 'none' : names}.`);
};

export const createScripts = (deps: ScriptRunnerDeps) => {
  const { settings, grants, audit, queue, watch, now } = deps;
  const running = new Set<Promise<unknown>>();
  const process: ProcessSettings = {
    timeoutMs: settings.Timeout,
    maxOutputBytes: settings.MaxOutputBytes,
    environment: deps.environment,
    isolation: deps.isolation,
    log: deps.log,
  };

  /** Gates 1 to 4 as things are now: the skill may have been switched off or removed since the run was compiled. */
  const passGates = async (call: ScriptCall, script: AgentSkillScriptDefinition): Promise<Admitted> => {
    const { skill, call: request } = call;
    const { tenantId } = request.run;
    const current = (await deps.skills.resolve(tenantId, [skill.name])).get(skill.name);
    if (current === undefined) throw new GateClosedError('switched on', 'the skill is gone');
    if (!current.enabled) throw new GateClosedError('switched on', 'the skill is switched off');
    if (!current.scripts.some(({ name }) => name === script.name))
      throw new GateClosedError('switched on', 'the script is gone');
    if (skill.origin === 'stored' && !settings.AllowStoredScripts)
      throw new GateClosedError('switched on', 'scripts of stored skills may not run');
    if (!(await grants.isGranted(tenantId, skill.name, script.name, now())))
      throw new GateClosedError('grant', 'there is no active grant');
    const interpreter = settings.Interpreters[script.extension];
    if (interpreter === undefined) throw new GateClosedError('interpreter', `there is none for ${script.extension}`);
    if (!(await isExecutable(interpreter.Command)))
      throw new GateClosedError('interpreter', `that of ${script.extension} cannot be executed`);
    return { script, interpreter, input: inputOf(script, call, settings.MaxArgumentBytes) };
  };

  const tell = (
    { skill, call }: ScriptCall,
    script: string,
    declared: OperationAudit,
    after: object,
  ): Promise<void> => {
    const { tenantId, runId } = call.run;
    const id = `${skill.name}:${script}`;
    return audit.tell(
      { tenantId, principal: call.principal, audit: declared },
      { id, before: null, after: { skill: skill.name, script, runId, ...after } },
    );
  };

  const gates = async (call: ScriptCall): Promise<Admitted> => {
    const script = scriptOf(call.skill, call.scriptName);
    try {
      return await passGates(call, script);
    } catch (error) {
      if (!(error instanceof GateClosedError)) throw error;
      await tell(call, script.name, scriptDenied, { gate: error.gate, reason: error.message });
      throw refusal(error.gate, error.message);
    }
  };

  const recordRun = async (call: ScriptCall, { script, input }: Admitted): Promise<void> => {
    const hashes = { scriptSha256: sha256(script.content), argumentsSha256: sha256(input) };
    try {
      await tell(call, script.name, scriptRun, hashes);
    } catch {
      // The trail has logged the reason. The script must not run without its entry.
      throw refusal('audit', 'the audit trail cannot be written');
    }
  };

  const run = async (call: ScriptCall): Promise<string> => {
    const signal = AbortSignal.any([call.signal, deps.stopping]);
    const watched = watch.began(call);
    let leave: (() => void) | null = null;
    try {
      await recordRun(call, await gates(call));
      leave = await queue.enter(call.call.run.tenantId, signal);
      watched.admitted();
      // A grant may have been revoked while the call waited for its turn.
      const { script, interpreter, input } = await gates(call);
      const end = await runScriptProcess({ skill: call.skill, script, interpreter, input, signal }, process);
      if (end.kind === 'exited') watched.ended('completed', end.exitCode);
      else if (end.kind !== 'notStarted') watched.ended(end.kind === 'timedOut' ? 'timed_out' : 'canceled');
      if (end.kind === 'exited') return end.text;
      if (end.kind === 'notStarted') throw refusal('interpreter', end.reason);
      if (end.kind === 'canceled') throw new ToolError('The script was ended with its run.');
      throw new ToolStop('timed_out', `The script timed out after ${settings.Timeout} ms.`);
    } catch (error) {
      // Something kept the process from running; the end of a process was reported before.
      watched.ended(signal.aborted ? 'canceled' : 'denied');
      throw error;
    } finally {
      leave?.();
    }
  };

  return {
    /** Gates 1 to 4, before anybody is asked for approval. Throws ToolStop, and writes `script.denied`. */
    async admit(call: ScriptCall): Promise<void> {
      try {
        await gates(call);
      } catch (error) {
        if (error instanceof ToolStop) watch.denied();
        throw error;
      }
    },
    run(call: ScriptCall): Promise<string> {
      const work = run(call);
      const done = (): void => {
        running.delete(work);
      };
      work.then(done, done);
      running.add(work);
      return work;
    },
    /** Resolves when no script runs any more. */
    async idle(): Promise<void> {
      await Promise.allSettled(running);
    },
  };
};

// The service's own settings may hold secrets, under whatever name a list allows.
const ownVariable = /^(?:acp_|service__|host__)/i;

/** Variables of the allow list that the service has, without its own settings and without any value in `secrets`. */
export const scriptEnvironment = (
  allowed: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
  secrets: ReadonlySet<string>,
): Record<string, string> =>
  Object.fromEntries(
    allowed.flatMap((name): [string, string][] => {
      const value = variables[name];
      return value === undefined || ownVariable.test(name) || secrets.has(value) ? [] : [[name, value]];
    }),
  );
