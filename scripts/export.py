"""`vanilla-transformer export`, from a checkout."""

from hf_vanilla_transformer.commands.export import main


if __name__ == "__main__":
    main()
