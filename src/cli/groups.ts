/** What the help says about each group of commands. */
export const groupDescriptions: Readonly<Record<string, string>> = {
  agents: 'define agents and look at their versions',
  runs: 'look at runs, follow and cancel them',
  sessions: 'conversations: look at them, delete and branch them',
  stats: 'sums over runs: counts, tokens, cost, errors',
  grants: 'which scripts of skills may run',
  skills: 'instructions, resources and scripts that agents load when they need them',
  attachments: 'files that runs can name',
  approvals: 'decide about tool calls that wait for a person',
  rules: 'standing rules that approve calls in advance',
  tools: 'tools that agents may use',
  models: 'model providers and their catalogs',
  keys: 'API keys',
  tenants: 'names of tenants',
  audit: 'who changed what: read the trail, check it, export it signed',
  emergency: 'what operators have stopped',
  db: 'look after the store',
};
