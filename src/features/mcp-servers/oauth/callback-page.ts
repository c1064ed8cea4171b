const page = (title: string, text: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${title}</title></head>
<body>
<h1>${title}</h1>
<p>${text}</p>
</body>
</html>
`;

/** What a person sees who comes back from an authorization server. Fixed: nothing of what they come with is in it. */
export const callbackPages = {
  connected: page('Connected', 'The service can use the MCP server now. You can close this window.'),
  failed: page(
    'Not connected',
    'The MCP server was not connected. Start again with <code>acp mcp authorize</code>; the log of the service has the reason.',
  ),
} as const;
