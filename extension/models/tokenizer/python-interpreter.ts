// Interpreter of chat templates. It has Python semantics for printed expressions, for the operators ==, in, ~ and %,
// and for the filters that produce or count text. All other behaviour is that of @huggingface/jinja. The length of a
// text is its number of code points, as in Python. Features that the library lacks throw an error.
import { Environment, Interpreter } from '@huggingface/jinja';
import { distinct, dumps, equals, isArray, isMap, isNumeric, str, tuples } from './jinja-values';
import { capitalized, strip } from './python-text';
import type { RuntimeValue } from './jinja-values';

type Evaluate = Interpreter['evaluate'];
type Statement = NonNullable<Parameters<Evaluate>[0]>;
type Value = ReturnType<Evaluate>;
type Node = Record<string, unknown> & { type: string };

/**
 * Type of a node that prints its expression `value` (`{{ … }}`); jinja-corrections.ts wraps each printed expression in
 * such a node.
 */
export const outputNode = 'Output';
/** Type of a node that contains the value of an evaluated operand, so that no operand is evaluated twice. */
const valueNode = 'Value';
const known = (value: Value): Node => ({ type: valueNode, value });

/** Returns the runtime value of a number, a text, a boolean or null. A whole number becomes an integer. */
const made = (value: unknown): Value => new Environment().set('value', value);
const Float = made(0.5).constructor as new (value: number) => Value;
const List = made([]).constructor as new (items: unknown[]) => Value;

/** Filters that convert their operand to text. */
const textFilters = new Set(['lower', 'upper', 'title', 'replace', 'indent']);

type Test = (...values: Value[]) => boolean;
const equalTest: Test = (a, b) => equals(a, b);
const tests = new Map<string, Test>([
  ['eq', equalTest],
  ['equalto', equalTest],
  ['number', isNumeric],
]);
/** The library's Jinja tests (`x is defined`). A test in `tests` replaces the library's test of the same name. */
const allTests = new Map([...new Environment().tests, ...tests]);

export class PythonInterpreter extends Interpreter {
  override evaluate(...[statement, environment]: Parameters<Evaluate>): Value {
    // Every scope has its own map of tests, so the map is replaced whenever a node is evaluated in a new scope.
    if (environment.tests !== allTests) environment.tests = allTests;
    return this.asPython(statement as Node | undefined, environment) ?? super.evaluate(statement, environment);
  }

  /**
   * Evaluates a node that Python's Jinja treats differently from @huggingface/jinja; returns undefined for all other
   * nodes.
   */
  private asPython(node: Node | undefined, environment: Environment): Value | undefined {
    const value = (part: unknown): Value => this.evaluate(part as Statement, environment);
    switch (node?.type) {
      case valueNode:
        return node.value as Value;
      case outputNode:
        return made(str(value(node.value)));
      case 'BinaryExpression':
        return this.binary(node, environment);
      case 'FilterExpression': {
        const operand = value(node.operand);
        return (
          this.filtered(node, operand, environment) ?? this.library({ ...node, operand: known(operand) }, environment)
        );
      }
      case 'MemberExpression': {
        if (!node.computed) return undefined;
        const object = value(node.object);
        return (
          this.partOfText(object, node, environment) ?? this.library({ ...node, object: known(object) }, environment)
        );
      }
      case 'CallExpression': {
        const callee = node.callee as Node;
        const isItems =
          callee.type === 'MemberExpression' && !callee.computed && (callee.property as Node).value === 'items';
        return isItems ? pairs(this.library(node, environment)) : undefined;
      }
      default:
        return undefined;
    }
  }

  private library(node: Node, environment: Environment): Value {
    return super.evaluate(node, environment);
  }

  private binary(node: Node, environment: Environment): Value | undefined {
    const operator = (node.operator as { value: string }).value;
    if (!['==', '!=', '~', 'in', 'not in', '%'].includes(operator)) return undefined;
    const left = this.evaluate(node.left as Statement, environment);
    const right = this.evaluate(node.right as Statement, environment);
    if (operator === '==' || operator === '!=') return made(equals(left, right) === (operator === '=='));
    if (operator === '~') return made(str(left) + str(right));
    if (operator === '%' && isNumeric(left) && isNumeric(right)) {
      const [a, b] = [Number(left.value), Number(right.value)];
      const rest = a - b * Math.floor(a / b);
      return [left, right].some(({ type }) => type === 'FloatValue') ? new Float(rest) : made(rest);
    }
    const within = operator === '%' ? undefined : contains(right, left);
    return within === undefined
      ? this.library({ ...node, left: known(left), right: known(right) }, environment)
      : made(within === (operator === 'in'));
  }

  private filtered(node: Node, operand: Value, environment: Environment): Value | undefined {
    const filter = node.filter as Node;
    const name = String((filter.type === 'CallExpression' ? (filter.callee as Node) : filter).value);
    const given = filter.type === 'CallExpression' ? (filter.args as Node[]) : [];
    const value = (part: unknown): RuntimeValue => this.evaluate(part as Statement, environment);
    // The cases below evaluate only the arguments that they use. For all other filters, the library evaluates the
    // arguments.
    const isNamed = ({ type }: Node) => type === 'KeywordArgumentExpression';
    const argument = (key: string) => given.find(part => isNamed(part) && (part.key as Node).value === key);
    const named = (key: string): RuntimeValue | undefined => {
      const part = argument(key);
      return part && value(part.value);
    };
    const first = given.find(part => !isNamed(part));
    switch (name) {
      case 'string':
        return made(str(operand));
      case 'tojson': {
        const separators = named('separators');
        return made(
          dumps(operand, {
            indent: (named('indent')?.value ?? (first && value(first).value)) as number | undefined,
            ensureAscii: Boolean(named('ensure_ascii')?.value),
            sortKeys: Boolean(named('sort_keys')?.value),
            separators: separators && isArray(separators) ? (separators.value.map(str) as [string, string]) : null,
          }),
        );
      }
      case 'join': {
        if (argument('attribute')) throw new Error('the filter join with an attribute is not supported');
        const items = isArray(operand) ? operand.value.map(str) : [...str(operand)];
        const separator = first ? value(first) : (named('d') ?? made(''));
        return made(items.join(str(separator)));
      }
      case 'capitalize':
        return made(capitalized(str(operand)));
      case 'length':
      case 'count':
        return typeof operand.value === 'string' ? made([...operand.value].length) : undefined;
      case 'first':
      case 'last':
        return isArray(operand) && operand.value.length === 0 ? made(undefined) : undefined;
      case 'items':
        return pairs(this.library({ ...node, operand: known(operand) }, environment));
      case 'trim':
        return made(strip(str(operand), first && str(value(first)), true, true));
      case 'unique':
        if (!isArray(operand)) return undefined;
        if (argument('attribute')) throw new Error('the filter unique with an attribute is not supported');
        return new List(distinct(operand.value, Boolean((first ? value(first) : named('case_sensitive'))?.value)));
      default:
        return textFilters.has(name) && typeof operand.value !== 'string'
          ? this.library({ ...node, operand: known(made(str(operand))) }, environment)
          : undefined;
    }
  }

  /**
   * Evaluates `text[i]` and `text[from:to:step]` over code points; returns undefined if the library's result is the
   * same.
   */
  private partOfText(object: RuntimeValue, node: Node, environment: Environment): Value | undefined {
    if (typeof object.value !== 'string') return undefined;
    const letters = [...object.value];
    if (letters.length === object.value.length) return undefined;
    const items = letters.map(letter => ({ type: 'StringLiteral', value: letter }));
    const part = this.library({ ...node, object: { type: 'ArrayLiteral', value: items } }, environment);
    return isArray(part) ? made(part.value.map(str).join('')) : part;
  }
}

/** Returns Python's `item in container`; undefined for operands that the library compares correctly. */
function contains(container: RuntimeValue, item: RuntimeValue): boolean | undefined {
  if (isArray(container)) return container.value.some(member => equals(member, item));
  if (isMap(container)) return typeof item.value === 'string' && container.value.has(item.value);
  return undefined;
}

/** Marks the pairs of a mapping as tuples, as in Python. */
function pairs(list: Value): Value {
  if (isArray(list)) for (const pair of list.value as RuntimeValue[]) tuples.add(pair);
  return list;
}
