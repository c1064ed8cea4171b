export type { McpTokenKey, McpTokenStore } from './module-grants.ts';
export { oauthPart } from './oauth-part.ts';
