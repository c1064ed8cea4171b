import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { type AgentMemory, agentModes, firstMode } from '../../engine/context/index.ts';
import type { RegisteredTool } from '../../engine/tools/index.ts';
import { fileTools, searchTools } from './file.tools.ts';
import { memoryStore } from './memory.store.ts';
import { modeTools, todoTools } from './state.tools.ts';

/** The settings of a definition that add tools. */
export interface MemoryFlags {
  readonly memory: {
    readonly enableTodo: boolean;
    readonly enableFileMemory: boolean;
    readonly enableTextSearch: boolean;
  } | null;
  readonly harness: {
    readonly disableTodo: boolean;
    readonly disableFileMemory: boolean;
    readonly disableModes: boolean;
  } | null;
}

/** Todo list, files and mode of agents. */
export const memoryFeature = (deps: { readonly storage: Storage; readonly now: () => number }) => {
  const store = deps.storage.stores(memoryStore);
  const toolDeps = { store, now: deps.now };
  const tools = {
    todo: todoTools(toolDeps),
    files: fileTools(toolDeps),
    search: searchTools(toolDeps),
    modes: modeTools(toolDeps),
  };
  return {
    /** Tools that a definition's settings add, in a fixed order. */
    builtInTools({ memory, harness }: MemoryFlags): readonly RegisteredTool[] {
      const has = {
        todo: memory?.enableTodo === true || harness?.disableTodo === false,
        files: memory?.enableFileMemory === true || harness?.disableFileMemory === false,
        search: memory?.enableTextSearch === true,
        modes: harness?.disableModes === false,
      };
      return [
        ...(has.todo ? tools.todo : []),
        ...(has.files ? tools.files : []),
        ...(has.search ? tools.search : []),
        ...(has.modes ? tools.modes : []),
      ];
    },
    /** What runs ask for. */
    memory: {
      async openTodos(owner) {
        const todos = await store.todos(owner);
        return todos.filter(({ status }) => status !== 'completed').map(({ text }) => text);
      },
      async mode(owner) {
        const stored = await store.mode(owner);
        return agentModes.find((mode) => mode === stored) ?? firstMode;
      },
      runClosed: (tenantId, runId) => store.forgottenRun(tenantId, runId),
    } satisfies AgentMemory,
    /** Forgets what belonged to a session, in the unit that removes it. */
    forgetSession: (stores: UnitOfWork, tenantId: string, sessionId: string) =>
      stores(memoryStore).forgetSession(tenantId, sessionId),
  };
};
