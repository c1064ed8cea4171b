import { secondMs } from '../duration.ts';
import { age, decimal, duration, int } from '../number-kinds.ts';
import { flag, group, mapOf, optional, requiredSecret, setting } from '../schema-nodes.ts';
import { encryptionKey, tenantSlug, text } from '../text-kinds.ts';
import { oneOf } from '../value-kind.ts';

/** What the features of a run share: tenant, limits of run trees, tools, ownership, encryption. */
export const coreSettings = {
  DefaultTenantId: setting(tenantSlug(), 'default', 'Tenant of a caller for whom nothing else decides one.'),
  Validation: group('Checks of agent definitions.', {
    McpTimeout: setting(duration(), 5 * secondMs, 'How long the validation of an agent waits for one MCP server.'),
  }),
  UtilityModel: group(
    'Model of calls that the service makes for itself, such as summaries. Without it: the model of the agent.',
    {
      Provider: optional(text(), 'Name of a configured provider.'),
      Model: optional(text(), 'Model of that provider; null: its default model.'),
    },
  ),
  AgentGraph: group('Limits of a run and the runs below it, counted together.', {
    MaxDepth: setting(
      int({ min: 0 }),
      3,
      'Deepest level of a child run, the root being 0. With 0 no agent can call another.',
    ),
    MaxTotalTokens: setting(int(), 200_000, 'Tokens of all runs of the tree. 0 or less: unlimited.'),
    MaxTotalRuns: setting(int(), 25, 'Child runs of the tree, without the root. 0 or less: unlimited.'),
    MaxTotalCost: optional(decimal({ min: 0 }), 'Cost of the tree in the configured currency. Null: unlimited.'),
    MaxDuration: optional(duration(), 'Time from the start of the root to the end of the last run. Null: unlimited.'),
    ChildDeadline: optional(duration(), 'Time a child run gets when its agent sets none.'),
    WaitTimeout: optional(
      duration(),
      'Time a parent waits for a child when its agent sets none. Must be longer than ChildDeadline.',
    ),
  }),
  Agents: group('Agent definitions.', {
    MaxParameterValueLength: setting(int({ min: 1 }), 4096, 'Largest value of one agent parameter, in bytes.'),
  }),
  Tools: group('Tool calls of agents.', {
    DefaultTimeout: setting(duration(), 30 * secondMs, 'Time one call may take when the tool sets none.'),
    DefaultMaxOutputBytes: optional(
      int({ min: 57 }),
      'Bytes of a result that the model gets to see when the tool sets no limit. Null: the whole result, up to 8388608.',
    ),
    MaxConsecutiveErrors: setting(int({ min: 0, max: 100 }), 3, 'Failed calls in a row that end the run.'),
    MaxIterations: setting(int({ min: 1, max: 1000 }), 40, 'Model calls of one run.'),
  }),
  StructuredResponse: group('Answers of agents whose response format is JSON.', {
    Enabled: flag(false, 'Answers are checked against their format.'),
    MaxRepairAttempts: setting(int({ min: 0, max: 5 }), 0, 'Extra model calls that may correct a bad answer.'),
  }),
  SessionOwnership: group('Who may use a session.', {
    Enabled: flag(false, 'A session is for the caller who opened it.'),
    RequireAuthenticatedOwner: flag(true, 'Only callers with an identity may open one.'),
    RefuseUnownedSessions: flag(false, 'Sessions that nobody owns cannot be used.'),
    ManagementRole: setting(
      oneOf(['Reader', 'Operator', 'Admin']),
      'Admin',
      'Role from which on a caller sees the sessions of everybody.',
    ),
  }),
  AtRest: group('Encryption of stored content.', {
    ActiveKeyId: optional(
      text({ pattern: /^[a-z0-9-]{1,32}$/, expected: 'the id of a key: 1 to 32 of a-z 0-9 -' }),
      'Key for what is written from now on. Null: nothing is encrypted.',
    ),
    Keys: mapOf(
      '{id}',
      requiredSecret(encryptionKey(), 'Keys to read with, the active one among them.'),
      'Keys to read with, the active one among them.',
      { pattern: /^[a-z0-9-]{1,32}$/, expected: '1 to 32 of a-z 0-9 -' },
    ),
  }),
  Audit: group('The audit log.', {
    ActorClaimType: optional(
      text(),
      'Claim of a token that names the actor. Null: the usual claims are tried in turn.',
    ),
  }),
  Approvals: group('Decisions of people about tool calls.', {
    DefaultExpiration: setting(age(), 24 * 3600 * secondMs, 'Age at which an open request lapses.'),
    ExpirationEnabled: flag(true, 'Whether open requests lapse at all.'),
    ScanInterval: setting(duration(), 60 * secondMs, 'Pause between two searches for lapsed requests.'),
    MaxPerScan: setting(int({ min: 1 }), 100, 'Requests one search handles.'),
  }),
};
