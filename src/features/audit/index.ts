export { type AuditLog, createAuditTrail } from './audit-trail.ts';
