import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { AcpError } from '../contract/errors.ts';

/** `google.rpc.Status`, as OTLP/HTTP has its errors. */
export interface OtlpStatus {
  readonly code: number;
  readonly message: string;
}

/** The codes of gRPC that stand for the status codes of HTTP. */
const grpcCodes: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  405: 12,
  409: 9,
  413: 8,
  415: 3,
  429: 8,
  499: 1,
  501: 12,
  503: 14,
  504: 4,
};
const unknownCode = 2;
const internalCode = 13;

export const otlpStatusOf = ({ status, message }: AcpError): OtlpStatus => ({
  code: grpcCodes[status] ?? (status >= 500 ? internalCode : unknownCode),
  message,
});

export const encodeOtlpStatus = ({ code, message }: OtlpStatus): Uint8Array =>
  new BinaryWriter().tag(1, 0).int32(code).tag(2, 2).string(message).finish();

export const isProtobuf = (contentType: string | undefined): boolean =>
  contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/x-protobuf';
