/** Policy said no: a closed code, one sentence for a person, and what to do about it where something can be done. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: string;
  /** HTTP status with which it is told. */
  readonly status: number;
  readonly remedy: string | undefined;

  constructor(code: string, message: string, about: { readonly status?: number; readonly remedy?: string } = {}) {
    super(message);
    this.code = code;
    this.status = about.status ?? 409;
    this.remedy = about.remedy;
  }
}
