// A picture in a box of fixed shape. The box has an <img> only while it is within or close to the visible part of the
// page, so a page with a thousand pictures holds and decodes only those that are seen. Pictures are data URLs, which
// browsers do not load lazily themselves. The shape comes from the file's header, so nothing moves when a picture appears.
import { html, LitElement, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { pictureType } from '../../extension/common/picture-type';
import { OnScreen } from './on-screen';

let observed: OnScreen | undefined;

/** Characters of a data URL's base64 text that are read for the picture's size. */
const headCharacters = 4096;

export class LazyPicture extends LitElement {
  static override properties = { src: { attribute: false }, label: { attribute: false }, seen: { state: true } };
  /** Data URL of a PNG or JPEG file. */
  declare src: string;
  /** Text that stands for the picture. */
  declare label: string;
  declare private seen: boolean;

  constructor() {
    super();
    this.src = '';
    this.label = '';
    this.seen = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    (observed ??= new OnScreen('300px')).observe(this, isOnScreen => (this.seen = isOnScreen));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    observed?.unobserve(this);
    this.seen = false;
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override updated(changed: PropertyValues<this>): void {
    if (!changed.has('src')) return;
    const { width, height } = sizeOf(this.src) ?? { width: 1, height: 1 };
    this.style.setProperty('--ratio', `${width} / ${height}`);
  }

  override render(): TemplateResult | typeof nothing {
    if (!this.seen) return nothing;
    return html`<img src=${this.src} alt=${this.label} loading="lazy" decoding="async" draggable="false" />`;
  }
}

/** Returns the size in the header of a data URL's picture; undefined if it is none. */
export function sizeOf(url: string): { width: number; height: number } | undefined {
  const [, text] = /^data:image\/(?:png|jpeg);base64,([A-Za-z0-9+/=]*)/.exec(url.slice(0, headCharacters)) ?? [];
  if (text === undefined) return undefined;
  const whole = atob(text.slice(0, text.length - (text.length % 4)));
  return pictureType(Uint8Array.from(whole, character => character.charCodeAt(0)));
}

customElements.define('lazy-picture', LazyPicture);
