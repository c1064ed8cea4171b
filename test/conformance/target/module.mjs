/** Tools and judges of the conformance suite; plain JavaScript, so that any build of the service loads it. */
import { ToolError } from 'acp';

const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });

/** Runs whose body was told to stop. */
const stopped = new Set();

let waiting = null;
/** Two calls at once meet; one that comes alone does not wait for ever. */
const meet = () => {
  if (waiting !== null) {
    waiting('together');
    waiting = null;
    return 'together';
  }
  return new Promise((resolve) => {
    const done = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const timer = setTimeout(() => {
      waiting = null;
      resolve('alone');
    }, 500);
    waiting = done;
  });
};

/** Types of the events of each run, as the listeners heard them. */
const heard = { all: new Map(), broken: new Map() };
const hear = (ears, { runId, type }) => ears.set(runId, [...(ears.get(runId) ?? []), type]);

export default (host) => ({
  name: 'conformance',
  eventListeners: [
    {
      name: 'broken',
      onEvent(event) {
        hear(heard.broken, event);
        if (event.type === 'message.completed') throw new Error('No more.');
      },
    },
    { name: 'all', onEvent: async (event) => hear(heard.all, event) },
  ],
  tools: [
    {
      name: 'heard',
      description: 'What listeners have heard of a run',
      inputSchema: object({ runId: { type: 'string' } }),
      execute: async ({ runId }) => ({ all: heard.all.get(runId) ?? [], broken: heard.broken.get(runId) ?? [] }),
    },
    {
      name: 'note',
      description: 'Writes an entry into the audit trail',
      inputSchema: object({ action: { type: 'string' } }),
      execute: async ({ action }, { tenantId }) => {
        try {
          await host.audit.record({ tenantId, action, entity: 'conformance:1', hash: 'none' });
          return 'written';
        } catch (error) {
          return error.message;
        }
      },
    },
    {
      name: 'add',
      description: 'Adds two numbers',
      inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }),
      execute: async ({ a, b }) => a + b,
    },
    {
      name: 'echo',
      description: 'Gives its text back',
      inputSchema: object({ text: { type: 'string' } }),
      execute: async ({ text }) => text,
    },
    {
      name: 'broken',
      description: 'Always fails',
      inputSchema: object({}),
      execute: async () => {
        throw new Error('a secret of the tool');
      },
    },
    {
      name: 'slow',
      description: 'Answers when it is told to stop',
      inputSchema: object({}),
      timeoutMs: 200,
      execute: (_args, { signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'), { once: true })),
    },
    {
      name: 'long',
      description: 'Answers more than it may',
      inputSchema: object({}),
      maxOutputBytes: 200,
      execute: async () => 'ä'.repeat(1000),
    },
    {
      name: 'context',
      description: 'Tells what it was given',
      inputSchema: object({}),
      effect: 'External',
      safeToRepeat: true,
      execute: async (_args, { signal, emit, saveAttachment, reportUsage, ...context }) => context,
    },
    {
      name: 'report',
      description: 'Reports events and usage',
      inputSchema: object({}),
      effect: 'Write',
      execute: async (_args, { emit, reportUsage }) => {
        emit('conformance.note', { n: 1 });
        reportUsage({ unit: 'pages', quantity: 3, cost: null, currency: null, isEstimated: true });
        return 'reported';
      },
    },
    {
      name: 'shape',
      description: 'Answers with what it is asked for',
      inputSchema: object({ kind: { enum: ['text', 'object', 'null', 'nothing'] } }),
      execute: async ({ kind }) => ({ text: 'a "text"', object: { b: [1, null] }, null: null })[kind],
    },
    {
      name: 'told',
      description: 'Fails with a message for the model',
      inputSchema: object({}),
      execute: async () => {
        throw new ToolError('There is no order A-1.');
      },
    },
    {
      name: 'picky',
      description: 'Checks its arguments itself',
      inputSchema: object({ list: { type: 'array', items: { type: 'integer' } } }),
      validate: ({ list }) => (list.length > 2 ? ['list must have at most two entries'] : []),
      execute: async ({ list }) => list.length,
    },
    {
      name: 'draw',
      description: 'Saves a file and answers with what was kept',
      inputSchema: object({ content: { type: 'string' }, fileName: { type: 'string' } }),
      maxOutputBytes: 1000,
      execute: ({ content, fileName }, { saveAttachment }) => saveAttachment(Buffer.from(content, 'base64'), fileName),
    },
    {
      name: 'permitted',
      description: 'Needs a permission',
      inputSchema: object({ n: { type: 'number' } }),
      requiredPermission: 'conformance.permission',
      effect: 'Destructive',
      execute: async ({ n }) => n,
    },
    {
      name: 'meet',
      description: 'Waits for another call',
      inputSchema: object({ who: { type: 'string' } }),
      execute: meet,
    },
    {
      name: 'hold',
      description: 'Waits until its run is canceled',
      inputSchema: object({}),
      timeoutMs: 60_000,
      execute: (_args, { signal, runId }) =>
        new Promise((resolve) =>
          signal.addEventListener(
            'abort',
            () => {
              stopped.add(runId);
              resolve('late');
            },
            { once: true },
          ),
        ),
    },
    {
      name: 'aborted',
      description: 'Whether the body of a run was told to stop',
      inputSchema: object({ runId: { type: 'string' } }),
      execute: async ({ runId }) => stopped.has(runId),
    },
    {
      name: 'guarded',
      description: 'Needs an approval',
      inputSchema: object({ amount: { type: 'number' } }),
      requiresApproval: true,
      effect: 'Destructive',
      execute: async ({ amount }) => `paid ${amount}`,
    },
    {
      name: 'on_client',
      description: "Runs in the caller's program",
      inputSchema: object({ amount: { type: 'number' } }),
      runsOnClient: true,
    },
  ],
  approvalPresenters: [
    {
      toolName: 'guarded',
      present: async ({ arguments: { amount } }) => {
        if (amount === 13) throw new Error('No presentation of 13.');
        return { entityType: 'Payment', entityId: String(amount), entityName: null, message: `Pay ${amount}.` };
      },
    },
  ],
  judges: [
    {
      name: 'told',
      judge: async (run) => ({ score: 50, reason: JSON.stringify(run), metrics: { length: run.output.length } }),
    },
    {
      name: 'input',
      judge: async ({ input }, signal) => {
        if (input === 'no verdict') return { score: null };
        if (input === 'too much') return { score: 101 };
        if (input === 'broken') throw new RangeError('a secret of the judge');
        if (input === 'slow') await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        return { score: 7, reason: 'x'.repeat(5000) };
      },
    },
  ],
  // Whoever is named is a user, a session and an owner of that name.
  dataSubjectResolver: {
    async resolve({ id }) {
      if (id === 'unresolvable') throw new Error('The directory is away.');
      return id === 'nobody' ? null : { userIds: [id], sessionIds: [id], ownerIds: [id] };
    },
  },
  skills: [
    {
      name: 'house-style',
      description: 'How this house writes.',
      instructions: 'Short sentences.',
    },
  ],
});
