export { oauthPart } from './oauth-part.ts';
