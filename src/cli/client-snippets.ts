/** Programs of others that are told where the service is. */
export const connectable = ['openai', 'claude-code', 'cursor', 'vscode'] as const;
export type Connectable = (typeof connectable)[number];

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

// Each names the credential by its variable: a snippet is pasted into files that others read.
const snippets: Readonly<Record<Connectable, (address: string) => string>> = {
  openai: (address) => `export OPENAI_BASE_URL=${address}\nexport OPENAI_API_KEY="$ACP_TOKEN"\n`,
  'claude-code': (address) =>
    `claude mcp add --transport http acp ${address} --header "Authorization: Bearer $ACP_TOKEN"\n`,
  cursor: (address) =>
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the client puts the variable in.
    json({ mcpServers: { acp: { url: address, headers: { Authorization: 'Bearer ${env:ACP_TOKEN}' } } } }),
  vscode: (address) =>
    json({
      inputs: [{ type: 'promptString', id: 'acp-token', description: 'Token or API key of acp', password: true }],
      servers: {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the client puts the input in.
        acp: { type: 'http', url: address, headers: { Authorization: 'Bearer ${input:acp-token}' } },
      },
    }),
};

const places: Readonly<Record<Connectable, string>> = {
  openai: 'For the shell that starts the program:',
  'claude-code': 'To be run once, in a shell that has ACP_TOKEN:',
  cursor: 'For ~/.cursor/mcp.json, or .cursor/mcp.json of a project:',
  vscode: 'For .vscode/mcp.json of a project:',
};

export interface Snippet {
  /** Where the text goes. */
  readonly place: string;
  readonly text: string;
}

/** What is pasted to have a client speak to `address`, its door of the service. */
export const snippetFor = (client: Connectable, address: string): Snippet => ({
  place: places[client],
  text: snippets[client](address),
});
